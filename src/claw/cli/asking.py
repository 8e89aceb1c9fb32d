"""Questions of claw's own to the person at the terminal."""

from __future__ import annotations

import asyncio

import click

from claw.cli.interrupts import Interrupts
from claw.cli.screen import Screen
from claw.cli.terminal import forget_typed, typing_shown
from claw.cli.typed import Answers

__all__ = ["asked", "confirmed"]


async def asked(question: str, screen: Screen, interrupts: Interrupts) -> str:
    """The line that was typed after the question; blank for one that was pasted.

    A signal raises ``CancelledError`` here, and reaches nobody else.
    """
    forget_typed(0)
    reading = asyncio.ensure_future(Answers(0).next())

    def stop() -> None:
        reading.cancel()

    with interrupts.front(stop), typing_shown(0), screen.pastes_marked():
        screen.ask(question)
        try:
            entered = await reading
        except asyncio.CancelledError:
            screen.line()
            raise
    return entered.text if entered is not None and entered.typed else ""


async def confirmed(question: str, screen: Screen) -> bool:
    """Whether the person typed a yes; a signal ends the command."""
    with Interrupts() as interrupts:
        try:
            entered = await asked(question, screen, interrupts)
        except asyncio.CancelledError:
            raise click.exceptions.Exit(interrupts.exit_code) from None
    return entered.lower() in ("y", "yes")
