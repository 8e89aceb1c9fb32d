"""``CommandHooks``: runs the hooks of an event and merges what they say."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from claw.policy.hooks.answer import HookAnswer, read_answer
from claw.policy.hooks.declared import TOOL_EVENTS, HookDeclaration, matching, other_names
from claw.ports import Clock, Command, Processes, ProcessResult
from claw.types.hooks import HookOutcome, HookPayload, HookRun, HookVerdict
from claw.types.tools import ToolSpec

__all__ = ["CommandHooks"]

KEPT_OUTPUT = 256 * 1024  # bytes at each end
BASH = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash")
SEVERITY: dict[HookVerdict, int] = {"passed": 0, "denied": 1, "failed": 2, "cancelled": 3}
# Interpreters that exit with 2, the code for "no", when the script itself is missing.
INTERPRETER = r"(?:python|pypy|perl)[\d.]*"


class CommandHooks:
    """Implements ``HookRunner``.

    PreToolUse hooks run one after the other, each seeing the input as the one before
    left it; the hooks of all other events run beside each other. All run, whatever
    one of them says; the strictest counts, and texts come in declared order.
    """

    def __init__(
        self,
        declarations: Sequence[HookDeclaration],
        processes: Processes,
        *,
        session_id: str,
        transcript_path: str,
        cwd: str,
        clock: Clock,
        project_dir: str = "",
        specs: Sequence[ToolSpec] = (),
    ) -> None:
        """``transcript_path`` is the session's journal, blank for none; ``specs`` for names."""
        self._declarations = tuple(declarations)
        self._processes = processes
        self._shared = {"session_id": session_id, "transcript_path": transcript_path, "cwd": cwd}
        self._cwd = cwd
        self._project = project_dir or cwd
        self._clock = clock
        self._names = other_names(specs)

    async def fire(self, payload: HookPayload) -> HookOutcome:
        hooks = matching(self._declarations, payload, self._names) if self._declarations else []
        if not hooks:
            return HookOutcome()
        if payload.event == "PreToolUse":
            finished, current = [], payload
            for hook in hooks:
                finished.append(await self._run(hook, current))
                updated = finished[-1][0].updated_input
                if updated is not None:
                    current = replace(current, fields={**current.fields, "tool_input": updated})
        else:
            finished = await self._run_together(hooks, payload)
        return _merge(hooks, finished)

    async def _run_together(
        self, hooks: Sequence[HookDeclaration], payload: HookPayload
    ) -> list[tuple[HookAnswer, HookRun]]:
        """In declared order. When cancelled, waits until all have let go."""
        tasks = [asyncio.ensure_future(self._run(hook, payload)) for hook in hooks]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, hook: HookDeclaration, payload: HookPayload) -> tuple[HookAnswer, HookRun]:
        began = self._clock.monotonic()
        exit_code = None
        try:
            result = await self._processes.run(self._command(hook, payload))
            exit_code = result.exit_code
            answer = self._read(hook, result)
        except Exception as error:  # whatever breaks here is the hook's failure, not the turn's
            answer = HookAnswer(failure=f"it could not be run: {type(error).__name__}: {error}")
        ms = round((self._clock.monotonic() - began) * 1000)
        verdict = _verdict(hook, answer)
        said = (answer.reason, answer.feedback, answer.failure, answer.notice)
        run = HookRun(
            hook.digest,
            hook.name,
            "error" if verdict == "passed" and answer.failure else verdict,
            tuple(dict.fromkeys(text for text in said if text)),
            exit_code,
            ms,
        )
        return answer, run

    def _command(self, hook: HookDeclaration, payload: HookPayload) -> Command:
        fields: dict[str, Any] = {
            **self._shared,
            "hook_event_name": payload.event,
            "permission_mode": payload.permission_mode,
        }
        if payload.event in TOOL_EVENTS:
            fields["tool_name"] = payload.subject
            fields["tool_use_id"] = payload.call_id
        return Command(
            (*_shell(), hook.command),
            cwd=self._cwd,
            env={"CLAUDE_PROJECT_DIR": self._project, "CLAW_PROJECT_DIR": self._project},
            stdin=_encode({**fields, **payload.fields}),
            timeout=hook.timeout,
            keep=KEPT_OUTPUT,
        )

    def _read(self, hook: HookDeclaration, result: ProcessResult) -> HookAnswer:
        if result.ended == "not_started":
            return HookAnswer(failure=f"it could not start: {result.error}")
        stdout = result.stdout.decode("utf-8", "replace")
        stderr = result.stderr.decode("utf-8", "replace")
        if result.ended == "timeout" or result.exit_code is None:
            # What it had said before the end may still narrow.
            cut = read_answer(hook.event, 1, stdout, stderr)
            return replace(cut, failure=f"it was killed after {hook.timeout:g} seconds")
        answer = read_answer(hook.event, result.exit_code, stdout, stderr)
        if result.exit_code == 2 and (script := _missing_script(hook, self._cwd, self._project)):
            said_no = read_answer(hook.event, 1, stdout, "")
            return replace(said_no, failure=f"it could not start: {script} does not exist")
        return answer


def _verdict(hook: HookDeclaration, answer: HookAnswer) -> HookVerdict:
    if answer.failure and hook.on_failure == "block":
        return "failed"
    return "denied" if answer.denied else "passed"


def _merge(
    hooks: Sequence[HookDeclaration], finished: Sequence[tuple[HookAnswer, HookRun]]
) -> HookOutcome:
    answers = [answer for answer, _ in finished]
    verdicts = [_verdict(hook, answer) for hook, answer in zip(hooks, answers, strict=True)]
    verdict = max(verdicts, key=SEVERITY.__getitem__)
    wishes = [answer.permission for answer in answers]
    permission: Literal["allow", "ask"] | None = None
    if "ask" in wishes:
        permission = "ask"
    elif "allow" in wishes:
        permission = "allow"
    reasons, by = [], ""
    for hook, answer, one in zip(hooks, answers, verdicts, strict=True):
        decides = one == verdict if verdict != "passed" else answer.permission == permission
        if not decides or (verdict == "passed" and permission is None):
            continue
        by = by or hook.label
        failed = one == "failed"
        reasons.append(f"{hook.label} failed: {answer.failure}" if failed else answer.reason)
    updated = [answer.updated_input for answer in answers if answer.updated_input is not None]
    return HookOutcome(
        verdict=verdict,
        reason="\n".join(dict.fromkeys(reason for reason in reasons if reason)),
        by=by,
        permission=permission,
        updated_input=updated[-1] if updated else None,
        messages=tuple(answer.feedback for answer in answers if answer.feedback),
        context=tuple(answer.context for answer in answers if answer.context),
        notices=tuple(
            text for pair in zip(hooks, answers, strict=True) for text in _notices(*pair)
        ),
        stop=next((answer.stop for answer in answers if answer.stop is not None), None),
        runs=tuple(run for _, run in finished),
    )


def _notices(hook: HookDeclaration, answer: HookAnswer) -> list[str]:
    notices = [answer.notice] if answer.notice else []
    if answer.failure:
        notices.append(f"{hook.event} {hook.label} failed: {answer.failure}")
    return notices


def _shell() -> tuple[str, ...]:
    for path in BASH:
        if os.access(path, os.X_OK):
            return (path, "--noprofile", "--norc", "-c")
    return ("/bin/sh", "-c")


def _encode(fields: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(fields)
    except UnicodeEncodeError:  # a lone surrogate, which only escapes can express
        import json

        return json.dumps(msgspec.to_builtins(fields)).encode()


def _missing_script(hook: HookDeclaration, cwd: str, project: str) -> str:
    """The script that a hook's interpreter did not find; blank if it is there or not known."""
    words = hook.command.split()
    if len(words) < 2 or not re.fullmatch(INTERPRETER, os.path.basename(words[0])):
        return ""
    path = re.sub(r"\$\{?(?:CLAUDE|CLAW)_PROJECT_DIR\}?", lambda _: project, words[1])
    path = os.path.expanduser(re.sub(r"[\"']", "", path))
    if path.startswith("-") or re.search(r"[$`*?\[\\;&|<>()]", path):
        return ""
    path = os.path.join(cwd, path)
    return "" if os.path.exists(path) else path
