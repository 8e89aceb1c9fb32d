"""Bootstrap: one audited turn, and the report of it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from claw.app.wishes import Wishes
from claw.engine.history import HistoryLog
from claw.engine.query_engine import QueryEngine
from claw.engine.turn_loop import names_by_kind, registry_of
from claw.ports import Approver, ModelClient
from claw.routing import Registry, RoutedMatch, explicit_command, route_prompt
from claw.types.entries import ReplyReceived, ToolFinished
from claw.types.results import TurnResult
from claw.types.surrogates import mend
from claw.version import __version__

__all__ = ["RuntimeSession", "bootstrap", "bootstrap_session"]


class RuntimeSession(msgspec.Struct, frozen=True):
    """One turn with all that led to it. ``context`` and ``setup`` are names and values.

    ``persisted_session_path`` is None for a session that is kept nowhere.
    """

    prompt: str
    context: dict[str, str]
    setup: dict[str, str]
    startup_steps: tuple[str, ...]
    system_init_message: str
    routed_matches: tuple[RoutedMatch, ...]
    command_execution_messages: tuple[str, ...]
    tool_execution_messages: tuple[str, ...]
    stream_events: tuple[dict[str, Any], ...]
    turn_result: TurnResult
    persisted_session_path: str | None
    history: HistoryLog

    def as_markdown(self) -> str:
        """What one attaches to a pull request or a fault report."""
        matches = [f"[{m.kind}] {m.name} ({m.score}) - {m.source}" for m in self.routed_matches]
        events = [_line(event) for event in self.stream_events]
        parts = [
            "# Runtime Session",
            f"Prompt: {' '.join(self.prompt.split())}",
            "## Context",
            _list(f"{name}: {value}" for name, value in self.context.items()),
            "## Setup",
            _list(f"{name}: {value}" for name, value in self.setup.items()),
            "## Startup Steps",
            _list(self.startup_steps),
            "## System Init",
            self.system_init_message,
            "## Routed Matches",
            _list(matches),
            "## Command Execution",
            _list(self.command_execution_messages),
            "## Tool Execution",
            _list(self.tool_execution_messages),
            "## Stream Events",
            _fenced("\n".join(events), "json"),
            "## Turn Result",
            self._result(),
            f"Persisted session path: {self.persisted_session_path or 'none'}",
            self.history.as_markdown(),
        ]
        return "\n\n".join(parts) + "\n"

    def _result(self) -> str:
        result = self.turn_result
        usage = f"in={_input(result)} out={result.usage.output_tokens}"
        denials = [
            f"denied: {d.tool_name} ({d.status}): {d.reason}" for d in result.permission_denials
        ]
        facts = [f"stop_reason={result.stop_reason}", f"usage: {usage}", *denials]
        return f"{_list(facts)}\n\n{_fenced(result.output, '')}"


def bootstrap_session(
    prompt: str,
    limit: int = 5,
    *,
    registry: Literal["builtin", "live"] = "builtin",
    persist: bool = True,
    cwd: str = ".",
    model: str | ModelClient | None = None,
    permission_mode: str | None = None,
    settings: str | None = None,
    approver: Approver | None = None,
    env: Mapping[str, str] | None = None,
) -> RuntimeSession:
    """Run one turn, really and once, keep its session, and tell all about it.

    Raises ``ValueError`` for a blank prompt, ``ConfigError`` and ``SessionError``.
    """
    wishes = Wishes(
        cwd=cwd,
        mode=permission_mode,
        settings_file=settings,
        ephemeral=not persist,
        origin="sdk",
        env=dict(os.environ if env is None else env),
    )
    with QueryEngine.from_wishes(wishes, model=model, approver=approver) as engine:
        return bootstrap(engine, registry_of(engine, registry), prompt, limit)


def bootstrap(engine: QueryEngine, registry: Registry, prompt: str, limit: int) -> RuntimeSession:
    """As ``bootstrap_session``, with an engine that is there."""
    prompt = mend(prompt)
    history = HistoryLog()
    house, runtime = engine.house, engine.runtime
    context = {
        "cwd": house.cwd,
        "session": engine.session_id,
        "model": runtime.model,
        "permission mode": runtime.mode,
        "registry": f"{registry.name} {registry.digest}",
    }
    history.add("context", f"cwd={house.cwd}, model={runtime.model}, mode={runtime.mode}")
    offered = f"{len(registry.commands)} commands, {len(registry.tools)} tools"
    history.add("registry", f"{registry.name} {registry.digest}: {offered}")
    matches = route_prompt(prompt, registry, limit)
    commands, tools = names_by_kind(matches)
    history.add("routing", f"{len(matches)} matches for {prompt!r}")
    events = [*engine.stream_submit_message(prompt, commands, tools)]
    result = msgspec.convert(events[-1].pop("result"), TurnResult)
    done = _calls_of(engine)
    executed = _commands(prompt, commands, result)
    ran = "a command" if explicit_command(prompt) else f"{len(done)} tool calls"
    history.add("execution", ran)
    history.add("turn", f"{result.stop_reason}, {runtime.state.steps} steps")
    path = engine.persist_session() if engine.is_kept else None
    nowhere = "kept in memory only" if house.journal_path is None else "nothing to keep"
    history.add("session_store", path or nowhere)
    return RuntimeSession(
        prompt=prompt,
        context=context,
        setup={
            "claw": __version__,
            "tools": ", ".join(spec.name for spec in house.tools),
            "hooks": str(len(house.loaded.hooks)),
            "permission rules": str(len(house.loaded.rules)),
            "settings with problems": str(len(house.loaded.problems)),
        },
        startup_steps=(
            "read the settings",
            "opened a session" if house.journal_path else "opened a session in memory",
            "installed the system prompt",
            f"made the {registry.name} registry",
            "routed the prompt",
        ),
        system_init_message=f"{offered}; the {runtime.mode} mode; {runtime.model} answers.",
        routed_matches=tuple(matches),
        command_execution_messages=executed,
        tool_execution_messages=done,
        stream_events=tuple(events),
        turn_result=result,
        persisted_session_path=path,
        history=history,
    )


def _commands(prompt: str, matched: Sequence[str], result: TurnResult) -> tuple[str, ...]:
    called = explicit_command(prompt)
    if called is None:
        return tuple(f"/{name}: not executed, nobody called it" for name in matched)
    return (f"/{called[0]}: {result.stop_reason}",)


def _calls_of(engine: QueryEngine) -> tuple[str, ...]:
    names: dict[str, str] = {}
    done = []
    for record in engine.house.records():
        match record.entry:
            case ReplyReceived():
                names |= {call.id: call.name for call in record.entry.message.tool_calls}
            case ToolFinished(call_id=id, status=status):
                done.append(f"{names.get(id, '')} ({id}): {status}")
    return tuple(done)


def _input(result: TurnResult) -> int:
    return result.usage.context_tokens - result.usage.output_tokens


def _line(event: dict[str, Any]) -> str:
    return json.dumps(event, ensure_ascii=False)


def _list(items: Any) -> str:
    return "\n".join(f"- {' '.join(item.split())}" for item in items) or "- none"


def _fenced(text: str, language: str) -> str:
    """A block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
