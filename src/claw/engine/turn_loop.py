"""The golden trajectory: one prompt, several turns, the same bytes every time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from claw.app.wishes import Wishes
from claw.engine.lent import portable
from claw.engine.query_engine import QueryEngine, QueryEngineConfig
from claw.engine.registry import builtin_registry, live_registry
from claw.engine.store import journal_of
from claw.ports import Approver, ModelClient
from claw.routing import Registry, RoutedMatch, explicit_command, route_prompt
from claw.types.results import TurnResult

__all__ = ["Route", "loop", "loop_engine", "names_by_kind", "registry_of", "run_turn_loop"]

Route = Literal["once", "each"]


def run_turn_loop(  # noqa: PLR0917  their order is public
    prompt: str,
    limit: int = 5,
    max_turns: int = 3,
    engine_max_turns: int | None = None,
    structured_output: bool | dict[str, object] = False,
    max_budget_tokens: int | None = None,
    route: Route = "once",
    prompts: Sequence[str] | None = None,
    persist: bool = False,
    registry: Literal["builtin", "live"] = "builtin",
    *,
    cwd: str = ".",
    session: str | None = None,
    model: str | ModelClient | None = None,
    permission_mode: str | None = None,
    settings: str | None = None,
    approver: Approver | None = None,
    env: Mapping[str, str] | None = None,
) -> list[TurnResult]:
    """Several turns over one session, ended by the first that is not ``completed``.

    The first turn sends ``prompt``, later ones those of ``prompts`` while there are any, then
    ``"PROMPT [turn N]"``. ``max_turns`` counts the rounds of this loop; ``engine_max_turns``
    is what the session accepts, None for just as many more. ``limit`` is of matches.
    ``route="each"`` routes every turn anew, by its prompt, what the last one said and the
    tools that it used. With ``persist``, or a ``session`` to go on with, the session is on disk.

    Raises ``ValueError`` for a blank prompt, ``ConfigError`` and ``SessionError``.
    """
    if not all(said.strip() for said in (prompt, *(prompts or ()))):
        raise ValueError("a prompt is empty")
    if route not in ("once", "each") or registry not in ("builtin", "live"):
        raise ValueError("route is `once` or `each`, registry is `builtin` or `live`")
    environ = dict(os.environ if env is None else env)
    wishes = Wishes(
        cwd=cwd,
        mode=permission_mode,
        settings_file=settings,
        session=None if session is None else journal_of(session, cwd, environ),
        ephemeral=not persist and session is None,
        origin="sdk",
        env=environ,
    )
    config = QueryEngineConfig(
        max_budget_tokens=max_budget_tokens, structured_output=structured_output
    )
    with loop_engine(
        wishes, config, max_turns, engine_max_turns, model=model, approver=approver
    ) as engine:
        offered = registry_of(engine, registry)
        turns = loop(
            engine, offered, prompt, prompts or (), max_turns=max_turns, limit=limit, route=route
        )
        return [*turns]


def loop_engine(
    wishes: Wishes,
    config: QueryEngineConfig,
    max_turns: int,
    engine_max_turns: int | None,
    *,
    model: str | ModelClient | None = None,
    approver: Approver | None = None,
) -> QueryEngine:
    """An engine that accepts as many turns as the loop has, unless it is told otherwise."""
    engine = QueryEngine.from_wishes(wishes, config, model=model, approver=approver)
    accepted = engine.turns + max_turns if engine_max_turns is None else engine_max_turns
    engine.config = replace(config, max_turns=accepted)
    return engine


def loop(
    engine: QueryEngine,
    registry: Registry,
    prompt: str,
    prompts: Sequence[str] = (),
    *,
    max_turns: int = 3,
    limit: int = 5,
    route: Route = "once",
) -> Iterator[TurnResult]:
    """The turns, one by one as they are asked for."""
    commands, tools = names_by_kind(route_prompt(prompt, registry, limit))
    last: TurnResult | None = None
    for number in range(1, max_turns + 1):
        said = _said(prompt, prompts, number)
        if route == "each":
            about = said if last is None else "\n".join((said, last.output, *engine.tools_used))
            found = route_prompt(portable(about, engine.names), registry, limit)
            commands, tools = names_by_kind(found)
        last = engine.submit_message(said, commands, tools)
        yield last
        if last.stop_reason != "completed":
            return


def registry_of(engine: QueryEngine, name: str) -> Registry:
    """What prompts are routed to: claw's own, or what the session offers."""
    if name == "live":
        return live_registry(engine.house)
    return builtin_registry(engine.house.cwd)


def names_by_kind(matches: Sequence[RoutedMatch]) -> tuple[list[str], list[str]]:
    """The names of commands, and those of tools."""
    commands = [match.name for match in matches if match.kind == "command"]
    return commands, [match.name for match in matches if match.kind == "tool"]


def _said(prompt: str, prompts: Sequence[str], number: int) -> str:
    if number - 2 >= len(prompts) and explicit_command(prompt) is not None:
        return prompt  # what follows a command is for the command
    if number == 1:
        return prompt
    return prompts[number - 2] if number - 2 < len(prompts) else f"{prompt} [turn {number}]"
