"""The interactive form: a line editor, and a turn for each line."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from claw.app.furnish import House, furnish
from claw.app.wishes import Wishes
from claw.cli.approve import TerminalApprover
from claw.cli.asking import asked
from claw.cli.debug_log import start_debug_log
from claw.cli.interrupts import Interrupts
from claw.cli.live import LiveCli, unfinished_turn
from claw.cli.render.activity import show_failure, show_notice
from claw.cli.render.answer import StreamedAnswer
from claw.cli.screen import Screen
from claw.cli.sessions_command import listed
from claw.cli.slash import Console, is_command
from claw.cli.style import one_line
from claw.cli.terminal import typing_hidden
from claw.config.paths import make_private
from claw.errors import ClawError, ConfigError
from claw.sessions.index import SessionSummary, find, list_sessions, summary_of
from claw.types.permissions import PermissionMode
from claw.types.results import Failure
from claw.version import __version__

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.output import Output

__all__ = ["run_repl"]

MOST_PICKED = 20  # sessions to choose from
PAINTED = 0.2  # seconds until the first prompt stands
CYCLE: tuple[PermissionMode, ...] = ("default", "acceptEdits", "plan")
_MODE_COLORS = {
    "default": "ansicyan",
    "acceptEdits": "ansimagenta",
    "plan": "ansiblue",
    "read-only": "ansigreen",
    "bypassPermissions": "ansired",
}


async def run_repl(wishes: Wishes, screen: Screen, *, debug: bool) -> int:
    """Read and run until the end. The exit code; raises ``ClawError`` before the first prompt."""
    with Interrupts() as interrupts:
        try:
            await _furnish_and_converse(wishes, screen, interrupts, debug=debug)
        except asyncio.CancelledError:
            return interrupts.exit_code
        return interrupts.exit_code if interrupts.ending else 0


async def _furnish_and_converse(
    wishes: Wishes, screen: Screen, interrupts: Interrupts, *, debug: bool
) -> None:
    approver = TerminalApprover(screen, 0)

    async def opened(wishes: Wishes) -> House:
        house = await furnish(wishes, approver=approver, sink=approver)
        if debug:
            start_debug_log(house, screen)
        return house

    house = await opened(wishes)
    try:
        _greet(house, screen)
        asyncio.get_running_loop().call_later(PAINTED, _warm_up, house)
        console = Console(house, house.runtime.mode, screen)
        editor = LineEditor(console, screen, interrupts, Path(house.loaded.homes.history))
        with interrupts.front(lambda: None):  # Ctrl-C between a prompt and a turn hits nobody
            while await _converse(editor, screen, interrupts) == "switch":
                following = await _other_session(editor.console, wishes, opened, interrupts)
                if following is not None:
                    await house.close()
                    house = following.house
                    editor.take(following)
                    _tell_session(house, screen)
    finally:
        await house.close()


async def _other_session(
    console: Console,
    wishes: Wishes,
    opened: Callable[[Wishes], Awaitable[House]],
    interrupts: Interrupts,
) -> Console | None:
    """That of the session that is wanted; None where there is none, which has been said."""
    wanted, console.wanted = console.wanted, None
    assert wanted is not None
    screen, house = console.screen, console.house
    home, ref = house.loaded.homes.config, wanted.ref
    try:
        if wanted.pick:
            ref = await _picked(list_sessions(home, house.cwd), house, screen, interrupts)
            if ref is None:
                return None
        if ref is not None and not wanted.fork:
            if wishes.ephemeral:
                screen.say("This claw keeps no session (--no-session-persistence): it opens none.")
                return None
            ref = find(home, house.cwd, ref)
            if ref == house.journal_path:
                screen.say("You are in that session already.")
                return None
        wishes = replace(wishes, session=ref, fork=wanted.fork, session_id=None)
        other = await opened(wishes)
    except ClawError as error:
        show_failure(screen, Failure(error.kind, error.message, error.hint))
        return None
    return Console(other, console.mode if wanted.fork else other.runtime.mode, screen)


async def _picked(
    found: Sequence[SessionSummary], house: House, screen: Screen, interrupts: Interrupts
) -> str | None:
    """The path of the one whose number is typed; None for none."""
    others = [one for one in found if one.path != house.journal_path]
    if not others:
        screen.say("There is no other session of this directory.")
        return None
    if len(others) > MOST_PICKED:
        screen.say(f"The newest {MOST_PICKED} of {len(others)}; /session switch REF takes any.")
        others = others[:MOST_PICKED]
    head, *rows = listed(others, screen.terminal.width - 4, screen.paint)
    screen.line(f"    {head}")
    for number, row in enumerate(rows, 1):
        screen.line(f"{number:>3} {row}")
    try:
        typed = await asked("Number (Enter for none): ", screen, interrupts)
    except asyncio.CancelledError:
        return None
    numbered = {str(number): one.path for number, one in enumerate(others, 1)}
    if typed in numbered:
        return numbered[typed]
    screen.say("Nothing was chosen.")
    return None


def _tell_session(house: House, screen: Screen) -> None:
    """One line, and what is not well with it."""
    if house.new or house.journal_path is None:
        screen.say(f"Session {house.session_id} is new.", "dim")
    else:
        title = one_line(summary_of(house.journal_path).title, 60)
        turns = house.runtime.state.turns
        screen.say(f"Session {house.session_id} (turns: {turns}): {title}".rstrip(": "), "dim")
    for notice in (*house.notices, *unfinished_turn(house)):
        if notice.code in ("session", "unfinished_turn") and notice.level != "info":
            show_notice(screen, notice)


def _greet(house: House, screen: Screen) -> None:
    paint = screen.paint
    crab = "🦀 " if screen.terminal.pictures else ""
    name = f"{crab}claw {__version__}"
    where = one_line(house.cwd, max(20, screen.terminal.width - len(name) - 4))
    screen.line(f"{crab}{paint('claw', 'bold')} {__version__}  {paint(where, 'dim')}")
    model = f"model {house.runtime.model}"
    hint = "/help for commands, Shift+Tab changes the mode, Ctrl-D ends"
    screen.say(f"{one_line(model, 60)} - {hint}", "dim")
    if not house.new:
        turns = house.runtime.state.turns
        screen.say(f"Going on with session {house.session_id} (turns: {turns})", "dim")
    for notice in (*house.notices, *unfinished_turn(house)):
        show_notice(screen, notice)


async def _converse(
    editor: LineEditor, screen: Screen, interrupts: Interrupts
) -> Literal["end", "switch"]:
    """Until the end, or until another session is wanted."""
    console = editor.console
    house, runtime = console.house, console.house.runtime
    live = LiveCli(house, screen, interrupts, printers=(StreamedAnswer(screen),), talkative=True)
    while not interrupts.ending and not console.ended:
        line = await editor.read()
        if line is None:
            break
        if not line.strip():
            continue
        try:
            if is_command(line):
                if answer := console.run(line):
                    screen.say(answer)
                if console.wanted is not None:
                    return "switch"
                if console.focus is not None:
                    focus, console.focus = console.focus, None
                    await live.compact(focus)
                continue
            if console.mode != runtime.mode:
                runtime.set_mode(console.mode)
            screen.line()
            with typing_hidden(0):
                await live.run_turn(line)
        except ClawError as error:
            show_failure(screen, Failure(error.kind, error.message, error.hint))
        screen.gap()
    return "end"


def _warm_up(house: House) -> None:
    """Load what the first request needs while the person types: it would hold up Ctrl-C."""
    if house.choice.base_url.startswith("https:"):
        threading.Thread(target=import_module, args=("httpx2",), daemon=True).start()


def _output() -> Output:
    """Never asks where the cursor is: each line would wait a second for a terminal that
    does not answer, and a Ctrl-C in that second would be lost."""
    from prompt_toolkit.output import create_output
    from prompt_toolkit.output.vt100 import Vt100_Output

    output = create_output()
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
    return output


class LineEditor:
    """The prompt, with history, several lines and the mode in front."""

    def __init__(
        self, console: Console, screen: Screen, interrupts: Interrupts, history_dir: Path
    ) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.output import ColorDepth

        self.take(console)
        self._screen = screen
        self._interrupts = interrupts
        self._session: PromptSession[str | None] = PromptSession(
            message=self._message,
            multiline=True,
            prompt_continuation="  ",
            history=_history(history_dir),
            key_bindings=self._keys(),
            color_depth=None if screen.paint.on else ColorDepth.DEPTH_1_BIT,
            output=_output(),
        )

    def take(self, console: Console) -> None:
        """Read for this conversation from now on."""
        self.console = console
        self._modes = CYCLE if console.mode in CYCLE else (*CYCLE, console.mode)

    async def read(self) -> str | None:
        """A line, or several; None at the end of input."""
        with self._interrupts.front(self._signalled):
            try:
                return await self._session.prompt_async(
                    handle_sigint=False, set_exception_handler=False
                )
            except EOFError:
                return None

    def _message(self) -> StyleAndTextTuples:
        mode = self.console.mode
        arrow = "❯" if self._screen.terminal.pictures else ">"
        return [(_MODE_COLORS[mode], mode), ("bold", f" {arrow} ")]

    def _signalled(self) -> None:
        app = self._session.app
        if self._interrupts.ending:
            if app.is_running:
                app.exit(result=None)
        else:
            self._clear()

    def _clear(self) -> None:
        """Ctrl-C at the prompt: what was typed goes; with nothing there, say how to leave."""
        from prompt_toolkit.application import run_in_terminal

        buffer = self._session.default_buffer
        if buffer.text:
            buffer.reset()
            self._session.app.invalidate()
        elif self._session.app.is_running:
            run_in_terminal(lambda: self._screen.line("Press Ctrl-D to leave."))

    def _keys(self) -> KeyBindings:
        from prompt_toolkit.key_binding import KeyBindings

        keys = KeyBindings()

        @keys.add("enter")
        @keys.add("c-j")  # what Enter is while a turn runs: a line that is typed ahead ends, too
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if buffer.document.current_line_before_cursor.endswith("\\"):
                buffer.delete_before_cursor()
                buffer.newline(copy_margin=False)
            else:
                buffer.validate_and_handle()

        @keys.add("escape", "enter")
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.newline(copy_margin=False)

        @keys.add("c-c")
        def _(event: KeyPressEvent) -> None:
            self._clear()

        @keys.add("s-tab")
        def _(event: KeyPressEvent) -> None:
            modes = self._modes
            at = modes.index(self.console.mode) if self.console.mode in modes else -1
            self.console.mode = modes[(at + 1) % len(modes)]

        return keys


def _history(directory: Path) -> History:
    """In a file only the user can read; in memory where that cannot be written."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    file = directory / "prompts"
    with suppress(OSError, ConfigError):
        make_private(str(directory))
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
        return FileHistory(str(file))
    return InMemoryHistory()
