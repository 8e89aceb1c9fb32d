"""The replies' text on stdout: what a one-shot command is run for."""

from __future__ import annotations

from claw.cli.screen import Screen
from claw.cli.style import harmless
from claw.errors import SessionError
from claw.types.entries import Event, ReplyReceived, Retried, TurnEnded, TurnStarted
from claw.types.events import Delta, TextDelta
from claw.types.messages import text_of
from claw.types.results import Failure

__all__ = ["StreamedAnswer", "Unrecorded", "WholeAnswer"]


class Unrecorded:
    """The text of a reply that came whole but could not be put on record: the disk was full.

    ``text`` is blank until such a turn has ended.
    """

    def __init__(self) -> None:
        self.text = ""
        self._heard = ""

    def emit(self, event: Event) -> None:
        match event:
            case TextDelta():
                self._heard += event.text
            case TurnStarted():
                self.text = self._heard = ""
            case ReplyReceived() | Retried():
                self._heard = ""
            case TurnEnded(error=Failure(kind=SessionError.kind)):
                self.text = self._heard.strip("\n")


class WholeAnswer:
    """For a pipe: every reply's text, whole, with a blank line between replies.

    A reply that was cut off waits until it is clear that it stands: one that is
    sampled again never reaches the pipe.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._unrecorded = Unrecorded()
        self._wrote = False
        self._waiting = ""

    def emit(self, event: Event) -> None:
        self._unrecorded.emit(event)
        match event:
            case ReplyReceived(complete=True):
                self._write(text_of(event.blocks))
            case ReplyReceived():
                self._waiting = text_of(event.blocks)
            case Retried():
                self._waiting = ""
            case _ if not isinstance(event, Delta):
                self._write(self._waiting or self._unrecorded.text)

    def _write(self, text: str) -> None:
        self._waiting = ""
        if not text.strip():
            return
        self._screen.product(("\n" if self._wrote else "") + text.strip("\n") + "\n")
        self._wrote = True


class StreamedAnswer:
    """For a terminal: the text as it comes."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._started = False

    def emit(self, event: Event) -> None:
        match event:
            case TextDelta():
                self._stream(event.text)
            case ReplyReceived() | Retried() if self._started:
                self._screen.end_line()
                self._started = False

    def _stream(self, text: str) -> None:
        if not self._started:
            text = text.lstrip("\n")
            if not text:
                return
            self._screen.gap()
            self._started = True
        self._screen.product(harmless(text))
