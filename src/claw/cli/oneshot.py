"""One prompt, one turn, one product on stdout."""

from __future__ import annotations

import asyncio
from typing import Any, Literal, Protocol

import msgspec
from msgspec.structs import replace

from claw.app.furnish import House, furnish
from claw.app.wishes import Wishes
from claw.cli.approve import TerminalApprover, terminal_to_ask_on
from claw.cli.debug_log import start_debug_log
from claw.cli.interrupts import Interrupts
from claw.cli.live import LiveCli, unfinished_turn
from claw.cli.render.activity import show_notice
from claw.cli.render.answer import StreamedAnswer, Unrecorded, WholeAnswer
from claw.cli.render.envelope import dumps, error_before_turn
from claw.cli.render.json_result import compact_result, json_result
from claw.cli.render.outcome import exit_code
from claw.cli.render.stream_json import StreamJson
from claw.cli.screen import Screen
from claw.cli.style import harmless
from claw.errors import ConfigError
from claw.models.offline.client import CONNECT_HINT
from claw.ports import EventSink
from claw.runtime.conversation import ConversationRuntime
from claw.runtime.turn import TurnOptions
from claw.types.messages import UserBlock
from claw.types.results import TurnSummary, final_assistant_text
from claw.version import __version__

__all__ = ["AnswerCheck", "Form", "run_one_shot"]


class AnswerCheck(Protocol):
    """What the last answer of a turn has to be."""

    def options(self, runtime: ConversationRuntime) -> TurnOptions:
        """Those of a turn that fails without such an answer; watches the conversation."""

    def content(self, prompt: str) -> tuple[UserBlock, ...]:
        """The prompt, and what is wanted."""

    @property
    def document(self) -> str:
        """The last answer, as it is to be shown."""


class Form(msgspec.Struct, frozen=True):
    """What stdout carries. ``partial`` belongs to ``stream-json``; ``check`` is for the last
    answer, which is then all that the text form carries."""

    output: Literal["text", "json", "stream-json"] = "text"
    compact: bool = False
    partial: bool = False
    verbose: bool = False
    debug: bool = False
    check: AnswerCheck | None = None


async def run_one_shot(prompt: str, wishes: Wishes, form: Form, screen: Screen) -> int:
    """The exit code. Raises ``ClawError`` for what goes wrong before the turn.

    A signal interrupts the turn; outside of it, it ends the command.
    """
    with Interrupts() as interrupts:
        try:
            summary = await _furnish_and_run(prompt, wishes, form, screen, interrupts)
        except asyncio.CancelledError:
            if form.output != "text":
                screen.product(dumps(error_before_turn("interrupted", "interrupted")) + "\n")
            return interrupts.exit_code
        if summary is None or screen.broken is not None:
            return screen.exit_code(1)
        if summary.stop_reason == "interrupted":
            return interrupts.exit_code
        return exit_code(summary)


async def _furnish_and_run(
    prompt: str, wishes: Wishes, form: Form, screen: Screen, interrupts: Interrupts
) -> TurnSummary | None:
    fd = terminal_to_ask_on(screen.terminal)
    approver = None if fd is None else TerminalApprover(screen, fd)
    house = await furnish(replace(wishes, at_once=True), approver=approver, sink=approver)
    try:
        if form.check is not None and house.choice.kind == "offline":
            raise ConfigError(
                "the offline model answers by rules: it makes no JSON document of a schema",
                hint=CONNECT_HINT,
            )
        for notice in (*house.notices, *unfinished_turn(house)):
            show_notice(screen, notice)
        if form.debug:
            start_debug_log(house, screen)
        return await _turn(prompt, house, form, screen, interrupts)
    finally:
        await house.close()


async def _turn(
    prompt: str, house: House, form: Form, screen: Screen, interrupts: Interrupts
) -> TurnSummary | None:
    """None where stdout takes nothing, so that nobody is asked."""

    def write(value: dict[str, Any]) -> None:
        screen.product(dumps(value) + "\n")

    unrecorded = Unrecorded()
    printers: tuple[EventSink, ...] = (unrecorded,)
    if form.output == "stream-json":
        write(_init(house))
        if screen.broken is not None:
            return None
        printers += (StreamJson(write, session_id=house.session_id, partial=form.partial),)
    elif form.output == "text" and not form.compact and form.check is None:
        printers += (StreamedAnswer(screen) if screen.terminal.stdout else WholeAnswer(screen),)
    live = LiveCli(
        house,
        screen,
        interrupts,
        printers=printers,
        talkative=screen.terminal.stderr or form.verbose,
    )
    if form.check is None:
        summary = await live.run_turn(prompt)
    else:
        options = form.check.options(house.runtime)
        summary = await live.run_turn(form.check.content(prompt), options)
    if form.output != "text":
        result = compact_result if form.compact else json_result
        value = result(summary, model=_answering(summary, house), session_id=house.session_id)
        text = unrecorded.text or _document(summary, form)
        write({**value, "result": text})
    elif (form.compact or form.check) and (text := unrecorded.text or _document(summary, form)):
        shown = harmless(text) if screen.terminal.stdout else text
        screen.product(shown.rstrip("\n") + "\n")
    return summary


def _document(summary: TurnSummary, form: Form) -> str:
    """The last answer; one that is checked is blank unless it fits."""
    if form.check is None:
        return final_assistant_text(summary)
    return form.check.document if summary.stop_reason == "completed" else ""


def _answering(summary: TurnSummary, house: House) -> str:
    """The model that gave the last reply, by its own name; else the one that was to."""
    given = summary.assistant_messages[-1].model if summary.assistant_messages else ""
    return given or house.runtime.model


def _init(house: House) -> dict[str, Any]:
    return {
        "type": "system",
        "subtype": "init",
        "session_id": house.session_id,
        "cwd": house.cwd,
        "model": house.runtime.model,
        "tools": [spec.name for spec in house.tools],
        "permission_mode": house.runtime.mode,
        "claw_version": __version__,
        "schema": 1,
    }
