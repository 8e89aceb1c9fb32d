"""`claw route`, `turn-loop`, `bootstrap`, `flush-transcript`, `load-session`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from claw.app.wishes import Wishes
from claw.cli.interrupts import interruptible
from claw.cli.launch import refuse_broad, wishes_of
from claw.cli.place import working_directory
from claw.cli.render.activity import show_notice
from claw.cli.render.envelope import dumps
from claw.cli.screen import Screen
from claw.cli.sessions_command import screen_here
from claw.cli.style import harmless
from claw.engine.bootstrap import bootstrap
from claw.engine.query_engine import QueryEngine, QueryEngineConfig
from claw.engine.registry import builtin_registry
from claw.engine.store import load_session
from claw.engine.turn_loop import loop, loop_engine, registry_of
from claw.errors import ConfigError, SessionError
from claw.routing import Registry, route_prompt
from claw.types.entries import Compacted, Event
from claw.types.events import Notice
from claw.types.results import StoredSession, TurnResult, format_auto_compaction_notice

__all__ = ["run_bootstrap", "run_flush", "run_load", "run_route", "run_turns"]

LARGEST_SCRIPT = 1024 * 1024  # bytes


def run_route(given: Mapping[str, Any]) -> int:
    """Print what a prompt is routed to; 0 also for nothing. Raises ``ClawError``."""
    prompt = _prompt(given)
    screen = screen_here()
    if given["registry"] == "live":
        with _engine(replace(_wishes(given), ephemeral=True), given, screen) as engine:
            registry = registry_of(engine, "live")
    else:
        registry = builtin_registry(working_directory(given["cwd"]))
    matches = route_prompt(prompt, registry, given["limit"])
    if given["output_format"] == "json":
        _json(screen, {"prompt": prompt, **_about(registry), "matches": matches})
        return screen.exit_code(0)
    for match in matches:
        fields = (match.kind, match.name, str(match.score), match.source)
        screen.product("\t".join(_shown(field, screen) for field in fields) + "\n")
    if not matches:
        screen.say("Nothing matches.")
    return screen.exit_code(0)


def run_turns(given: Mapping[str, Any]) -> int:
    """Print the turns of a loop; 0 whatever their stop reasons. Raises ``ClawError``."""
    prompt, script = _prompt(given), _script(given["script"])
    rounds = given["loops"] or (len(script) + 1 if script else 3)
    wishes = _wishes(given)
    kept = given["persist"] or wishes.session is not None
    screen = screen_here()
    refuse_broad(wishes.cwd, screen, allowed=given["allow_broad_cwd"])
    config = QueryEngineConfig(
        max_budget_tokens=given["budget"], structured_output=given["structured_output"]
    )
    wishes = replace(wishes, ephemeral=wishes.ephemeral or not kept)
    with (
        interruptible(),
        loop_engine(
            wishes, config, rounds, given["engine_max_turns"], model=given["model"]
        ) as engine,
    ):
        _listen(engine, screen)
        if given["persist"]:
            _refuse_memory(engine)
        registry = registry_of(engine, given["registry"])
        turns: list[TurnResult] = []
        compactions: list[dict[str, int]] = []

        def count(event: Event) -> None:
            if isinstance(event, Compacted):
                removed = event.removed_messages
                compactions.append({"turn": len(turns) + 1, "removed_messages": removed})

        engine.runtime.listen(count)
        for result in loop(
            engine,
            registry,
            prompt,
            script,
            max_turns=rounds,
            limit=given["limit"],
            route=given["route"],
        ):
            turns.append(result)
            if given["output_format"] != "json":
                screen.product(_turn(len(turns), result, screen))
        path = engine.persist_session() if engine.is_kept else None
    if given["output_format"] == "json":
        kept_at = {"session_id": engine.session_id, "persisted_session_path": path}
        came_of_it = {"turns": turns, "compactions": compactions}
        _json(screen, {**_about(registry), **kept_at, **came_of_it})
    elif path is not None:
        screen.line(f"The session is kept: claw load-session {engine.session_id}")
    return screen.exit_code(0)


def run_bootstrap(given: Mapping[str, Any]) -> int:
    """Print the report of one turn; 0 whatever came of it. Raises ``ClawError``."""
    prompt, wishes, screen = _prompt(given), _wishes(given), screen_here()
    refuse_broad(wishes.cwd, screen, allowed=given["allow_broad_cwd"])
    with interruptible(), _engine(wishes, given, screen) as engine:
        registry = registry_of(engine, given["registry"])
        session = bootstrap(engine, registry, prompt, given["limit"])
    if given["output_format"] == "json":
        _json(screen, {**_about(registry), **msgspec.to_builtins(session)})
    else:
        screen.product(_shown(session.as_markdown(), screen))
    return screen.exit_code(0)


def run_flush(given: Mapping[str, Any]) -> int:
    """Run one turn, make it durable and print where it is. Raises ``ClawError``."""
    prompt, wishes, screen = _prompt(given), _wishes(given), screen_here()
    refuse_broad(wishes.cwd, screen, allowed=given["allow_broad_cwd"])
    wishes = replace(wishes, ephemeral=False)
    with interruptible(), _engine(wishes, given, screen) as engine:
        _refuse_memory(engine)
        result = engine.submit_message(prompt)
        path = engine.persist_session()
        flushed = engine.transcript_store.flushed
    if given["output_format"] == "json":
        about = {"session_id": result.session_id, "path": path, "flushed": flushed}
        _json(screen, {**about, "stop_reason": result.stop_reason})
    else:
        screen.product(f"{_shown(path, screen)}\nflushed={flushed}\n")
    return screen.exit_code(0)


def run_load(given: Mapping[str, Any]) -> int:
    """Print what a stored session comes to. Raises ``ClawError``."""
    stored = load_session(given["session"], cwd=working_directory(given["cwd"]))
    screen = screen_here()
    if given["output_format"] == "json":
        _json(screen, msgspec.to_builtins(stored))
    else:
        screen.product(_stored(stored))
    return screen.exit_code(0)


def _stored(stored: StoredSession) -> str:
    usage = f"in={stored.input_tokens} out={stored.output_tokens}"
    return f"{harmless(stored.session_id)}\n{len(stored.messages)} messages\n{usage}\n"


# -- what they share -------------------------------------------------------------------


def _engine(wishes: Wishes, given: Mapping[str, Any], screen: Screen) -> QueryEngine:
    engine = QueryEngine.from_wishes(wishes, model=given["model"])
    _listen(engine, screen)
    return engine


def _listen(engine: QueryEngine, screen: Screen) -> None:
    """Warnings and compactions on stderr; stdout is the product."""
    for notice in engine.house.notices:
        if notice.level != "info":
            show_notice(screen, notice)

    def tell(event: Event) -> None:
        if isinstance(event, Notice) and event.level != "info":
            show_notice(screen, event)
        elif isinstance(event, Compacted):
            left_out = f" (left out: {', '.join(event.dropped)})" if event.dropped else ""
            screen.line(f"{format_auto_compaction_notice(event.removed_messages)}{left_out}")

    engine.runtime.listen(tell)


def _refuse_memory(engine: QueryEngine) -> None:
    """Before the turns that somebody wants to be kept. Raises ``SessionError``."""
    if engine.house.journal_path is None:
        raise SessionError(
            "the session could not be kept", hint="Set CLAW_CONFIG_HOME to a directory for it."
        )


def _wishes(given: Mapping[str, Any]) -> Wishes:
    """The flags before the command hold too. Raises ``UsageError``."""
    wishes = wishes_of({**given, "model": None})
    if wishes.ephemeral and wishes.session is not None:
        raise click.UsageError("`--no-session-persistence` cannot go on with a session")
    return wishes


def _prompt(given: Mapping[str, Any]) -> str:
    words: str = given["prompt"].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if not words.strip():
        raise click.UsageError("the prompt is empty")
    return words


def _script(path: str | None) -> list[str]:
    """The prompts of a file: a JSON list of texts, or one a line. Raises ``ConfigError``."""
    if path is None:
        return []
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST_SCRIPT + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        hint = "It has one prompt a line, or is a JSON list of texts."
        raise ConfigError(f"cannot read the script {path}: {why}", hint=hint) from error
    if len(content) > LARGEST_SCRIPT:
        raise ConfigError(f"the script {path} has more than {LARGEST_SCRIPT // 1024} KiB")
    if content.lstrip().startswith(b"["):
        try:
            prompts = msgspec.json.decode(content, type=list[str])
        except msgspec.DecodeError as error:
            raise ConfigError(f"the script {path} is no JSON list of prompts: {error}") from error
    else:
        prompts = content.decode("utf-8", "replace").splitlines()
    if not any(text.strip() for text in prompts):
        raise ConfigError(f"there is no prompt in the script {path}")
    return [text for text in prompts if text.strip()]


def _turn(number: int, result: TurnResult, screen: Screen) -> str:
    gap = "\n" if number > 1 else ""
    output = _shown(result.output, screen)
    return f"{gap}## Turn {number}\n\n{output}\n\nstop_reason={result.stop_reason}\n"


def _shown(text: str, screen: Screen) -> str:
    return harmless(text) if screen.terminal.stdout else text


def _about(registry: Registry) -> dict[str, Any]:
    return {"schema": 1, "registry": {"name": registry.name, "digest": registry.digest}}


def _json(screen: Screen, value: dict[str, Any]) -> None:
    screen.product(dumps(msgspec.to_builtins(value)) + "\n")
