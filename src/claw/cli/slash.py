"""What can be said to claw itself at the prompt: ``/help`` and its kin."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from claw.app.furnish import House
from claw.cli.going_back import WHAT, last_of, restored, turn_list
from claw.cli.render.story import as_text, story
from claw.cli.screen import Screen
from claw.cli.style import human_tokens
from claw.policy.display import visible
from claw.types.permissions import MODE_ALIASES, MODES, PermissionMode

__all__ = ["Console", "Wanted", "is_command", "mode_named"]

HELP = """\
/help              this list
/mode [MODE]       show or change the permission mode
/model             the model that answers
/compact [FOCUS]   put a summary in place of what came before
/session           this session, and how to go on with it later
/session new       start another one
/session fork      go on in a copy of this one
/session switch [REF]  go on with another one of this directory
/rename TITLE      give this session a title
/history [N]       what was said, also before a summary took its place; the last N messages
/rewind [N]        go back to before turn N; without a number, the turns
/rewind N files    put back only the files, or only the `conversation`
/rewind undo       take the last rewind back
/todos             the agent's list of what is to do
/permissions       the mode and what was allowed for this session
/exit, /quit       end (or Ctrl-D)

Enter sends, Alt-Enter or a `\\` at the end of a line begins a new line.
Shift+Tab changes the permission mode. Ctrl-C interrupts a running turn."""

LONGEST_TITLE = 200
ALL = 10**9  # messages

_TODO_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


def is_command(line: str) -> bool:
    """``/word``, not a path such as ``/etc/hosts``."""
    word = line.split(maxsplit=1)[0] if line.strip() else ""
    return word.startswith("/") and "/" not in word[1:] and "\n" not in line


def mode_named(name: str) -> PermissionMode | None:
    """By its name or alias, whatever the case."""
    wanted = name.lower()
    known: dict[str, PermissionMode] = {mode.lower(): mode for mode in MODES}
    return known.get(wanted) or MODE_ALIASES.get(wanted)


class Wanted(msgspec.Struct, frozen=True):
    """Another session: a new one, a copy of this one, or the one that ``ref`` names.

    With ``pick`` the person is to choose.
    """

    ref: str | None = None
    fork: bool = False
    pick: bool = False


class Console(msgspec.Struct, eq=False):
    """Answers commands about one conversation. ``mode`` is the one wished for.

    It takes effect with the next turn: looking around leaves nothing on record.
    ``focus`` is what a compaction that is wanted now is to heed, None without one;
    ``wanted`` is the session to go on with. ``undo`` is the last rewind: in which turn, the
    place to go back to, and what was put back.
    """

    house: House
    mode: PermissionMode
    screen: Screen
    ended: bool = False
    focus: str | None = None
    wanted: Wanted | None = None
    undo: tuple[int, int, str] | None = None

    def run(self, line: str) -> str:
        """The answer to a command. Raises ``ClawError``."""
        name, _, rest = line.strip().partition(" ")
        commands: dict[str, Callable[[str], str]] = {
            "/help": lambda _: HELP,
            "/exit": self._exit,
            "/quit": self._exit,
            "/mode": self._mode,
            "/model": self._model,
            "/compact": self._compact,
            "/session": self._session,
            "/rename": self._rename,
            "/history": self._history,
            "/rewind": self._rewind,
            "/todos": self._todos,
            "/permissions": self._permissions,
        }
        if (known := name.lower()) in commands:
            return commands[known](rest.strip())
        import difflib  # only for a mistake; nobody else pays for it

        near = difflib.get_close_matches(known, commands, n=2)
        hint = f"Did you mean {' or '.join(near)}?" if near else "/help lists the commands."
        return f"There is no command {_line(name)}. {hint}"

    def _exit(self, _: str) -> str:
        self.ended = True
        return ""

    def _compact(self, focus: str) -> str:
        self.focus = focus
        return ""

    def _mode(self, name: str) -> str:
        if not name:
            return f"The mode is {self.mode}; there are {', '.join(MODES)}."
        mode = mode_named(name)
        if mode is None:
            return f"There is no mode {_line(name)}; there are {', '.join(MODES)}."
        self.mode = mode
        return f"The mode is {mode}, from the next turn on."

    def _model(self, _: str) -> str:
        return f"{self.house.runtime.model} ({self.house.choice.provider})"

    def _session(self, words: str) -> str:
        match words.split():
            case []:
                return self._about()
            case ["new"]:
                self.wanted = Wanted()
            case ["fork"]:
                return self._fork()
            case ["switch"]:
                self.wanted = Wanted(pick=True)
            case ["switch", ref]:
                self.wanted = Wanted(ref)
            case _:
                return "It is /session, /session new, /session fork or /session switch [REF]."
        return ""

    def _about(self) -> str:
        state, id = self.house.runtime.state, self.house.session_id
        spent = human_tokens(state.usage.context_tokens)
        lines = [f"{id}, turns: {state.turns}, {spent}"]
        if state.title:
            lines.append(_line(state.title))
        if self.house.journal_path is None:
            return "\n".join([*lines, "It is kept in memory only."])
        lines.append(f"Its file: {_line(self.house.journal_path)}")
        return "\n".join([*lines, f"Go on with it later: claw --resume {id}"])

    def _fork(self) -> str:
        if self.house.journal_path is None:
            return "This session is kept in memory only: there is nothing to copy."
        if not self.house.runtime.state.turns:
            return "Nothing was said yet: there is nothing to copy."
        self.wanted = Wanted(self.house.journal_path, fork=True)
        return ""

    def _rename(self, title: str) -> str:
        title = " ".join(title.split())
        if not title or len(title) > LONGEST_TITLE:
            return f"A title has 1 to {LONGEST_TITLE} characters: /rename the parser, second try"
        self.house.runtime.rename(title)
        return f"This session is called: {_line(title)}"

    def _history(self, words: str) -> str:
        if words and not re.fullmatch("[1-9][0-9]{0,8}", words):
            return "It is /history, or /history 20 for the last 20 messages."
        told = last_of(story(self.house.records()), int(words) if words else ALL)
        if not told:
            return "Nothing was said yet."
        for line in as_text(told, self.screen.paint):
            self.screen.product(f"{line}\n")
        return ""

    def _rewind(self, words: str) -> str:
        runtime = self.house.runtime
        if words == "undo":
            return self._undo()
        points = runtime.turns()
        if not words:
            return turn_list(points, self.screen.terminal.width)
        number, _, what = words.partition(" ")
        what = what.strip().lower() or "both"
        point = next((point for point in points if str(point.turn) == number), None)
        if what not in WHAT:
            return f"There is no {_line(what)} to put back; there are {', '.join(WHAT)}."
        if point is None:
            return f"There is no turn {_line(number)} to go back to; /rewind lists them."
        conversation, files = WHAT[what]
        done = runtime.rewind(point.seq, conversation=conversation, files=files)
        if done.undo is not None:
            self.undo = (runtime.state.turns, done.undo, what)
        return restored(point, what, done)

    def _undo(self) -> str:
        runtime = self.house.runtime
        if self.undo is None or self.undo[0] != runtime.state.turns:
            return "There is no rewind to undo."
        (_, place, what), self.undo = self.undo, None
        conversation, files = WHAT[what]
        return restored(None, what, runtime.rewind(place, conversation=conversation, files=files))

    def _todos(self, _: str) -> str:
        todos = self.house.runtime.state.todos
        lines = [f"{_TODO_MARKS[todo.status]} {_line(todo.content)}" for todo in todos]
        return "\n".join(lines) or "Nothing is on the list."

    def _permissions(self, _: str) -> str:
        rules = self.house.runtime.state.rules
        lines = [f"  {rule.behavior} {_line(str(rule))}" for rule in rules]
        said = "\n".join(["Added in this session:", *lines]) if lines else "No rule was added."
        return f"The mode is {self.mode}.\n{said}"


def _line(text: str) -> str:
    return visible(text, multiline=False)
