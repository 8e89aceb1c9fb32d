"""``LiveCli``: one turn as a person at a terminal, or a pipe, gets to see it."""

from __future__ import annotations

from collections.abc import Sequence

from claw.app.furnish import House
from claw.cli.interrupts import Interrupts
from claw.cli.render.activity import Activity, Warnings, show_failure
from claw.cli.render.outcome import failure
from claw.cli.screen import Screen
from claw.cli.spinner import Spinner
from claw.cli.style import human_seconds, human_tokens
from claw.ports import EventSink
from claw.runtime.turn import TurnOptions
from claw.types.entries import Compacted
from claw.types.events import Notice
from claw.types.messages import UserBlock
from claw.types.results import TurnSummary, format_auto_compaction_notice

__all__ = ["LiveCli", "unfinished_turn"]


def unfinished_turn(house: House) -> tuple[Notice, ...]:
    """What to know of a session whose last turn nobody ended: its process was killed."""
    state = house.runtime.state
    if not state.in_turn:
        return ()
    text = "The last turn of this session did not end: its process was killed, or the machine was."
    if state.transcript.open_calls:
        text += " Calls whose outcome is unknown are marked."
    return (Notice("unfinished_turn", "warning", text),)


class LiveCli:
    """Runs turns of one conversation: spinner, Ctrl-C, what happens, how it ended.

    ``printers`` write the product of the form (the answer, JSON lines) and see
    every event. ``talkative``: calls and results on stderr, not only warnings.
    """

    def __init__(
        self,
        house: House,
        screen: Screen,
        interrupts: Interrupts,
        *,
        printers: Sequence[EventSink],
        talkative: bool,
    ) -> None:
        self._runtime = house.runtime
        self._screen = screen
        self._interrupts = interrupts
        self._spinner = Spinner(screen)
        self._talkative = talkative
        activity: EventSink = Activity(screen) if talkative else Warnings(screen)
        for sink in (self._spinner, activity, *printers):
            self._runtime.listen(sink.emit)

    async def run_turn(
        self,
        prompt: str | tuple[UserBlock, ...],
        options: TurnOptions | None = None,
    ) -> TurnSummary:
        """One turn to its end, shown as it happens. Raises what the runtime raises.

        While it runs, Ctrl-C interrupts it; the handler of before is back in front
        afterwards, however it ended.
        """
        self._screen.on_broken = self._runtime.interrupt
        with self._interrupts.front(self._runtime.interrupt):
            async with self._spinner:
                summary = await self._runtime.run_turn(prompt, options=options)
        if self._screen.broken is None:  # else nobody reads, and the interrupt was ours
            self._show_end(summary)
        return summary

    async def compact(self, focus: str) -> None:
        """Compact now, and say what came of it. Ctrl-C ends it."""
        with self._interrupts.front(self._runtime.interrupt):
            async with self._spinner:
                done = await self._runtime.compact(focus)
        self._screen.line(_compacted(done))

    def _show_end(self, summary: TurnSummary) -> None:
        if (removed := sum(c.removed_messages for c in summary.compactions)) > 0:
            self._screen.line(format_auto_compaction_notice(removed))
        problem = failure(summary)
        if problem is None:
            if self._talkative:
                self._screen.line(self._closing("✨ ", "Done", "green"))
            return
        if self._talkative and summary.stop_reason in ("error", "context_overflow"):
            self._screen.line(self._closing("❌ ", "Request failed", "red"))
        if summary.stop_reason == "interrupted" and self._talkative:
            self._screen.line(self._closing("", "Interrupted", "yellow"))
        else:
            show_failure(self._screen, problem)

    def _closing(self, picture: str, word: str, color: str) -> str:
        counts = human_seconds(self._spinner.seconds)
        if self._spinner.tokens:
            counts += f", {human_tokens(self._spinner.tokens)}"
        mark = picture if self._screen.terminal.pictures else ""
        paint = self._screen.paint
        return f"{mark}{paint(word, color)} {paint(f'({counts})', 'dim')}"


def _compacted(done: Compacted | None) -> str:
    if done is None:
        return "Nothing was compacted."
    before, after = human_tokens(done.tokens_before), human_tokens(done.tokens_after)
    left_out = f"; left out: {', '.join(done.dropped)}" if done.dropped else ""
    return f"Compacted {done.removed_messages} messages: {before} -> about {after}{left_out}"
