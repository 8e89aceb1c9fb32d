"""What can be said to claw itself at the prompt: ``/help`` and its kin."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from claw.app import House
from claw.policy.display import visible
from claw.types.permissions import MODE_ALIASES, MODES, PermissionMode

__all__ = ["Console", "is_command", "mode_named"]

HELP = """\
/help              this list
/mode [MODE]       show or change the permission mode
/model             the model that answers
/session           this session, and how to go on with it later
/todos             the agent's list of what is to do
/permissions       the mode and what was allowed for this session
/exit, /quit       end (or Ctrl-D)

Enter sends, Alt-Enter or a `\\` at the end of a line begins a new line.
Shift+Tab changes the permission mode. Ctrl-C interrupts a running turn."""

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


class Console(msgspec.Struct, eq=False):
    """Answers commands about one conversation. ``mode`` is the one wished for.

    It takes effect with the next turn: looking around leaves nothing on record.
    """

    house: House
    mode: PermissionMode
    ended: bool = False

    def run(self, line: str) -> str:
        """The answer to a command."""
        name, _, rest = line.strip().partition(" ")
        commands: dict[str, Callable[[str], str]] = {
            "/help": lambda _: HELP,
            "/exit": self._exit,
            "/quit": self._exit,
            "/mode": self._mode,
            "/model": self._model,
            "/session": self._session,
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

    def _session(self, _: str) -> str:
        id = self.house.session_id
        turns = self.house.runtime.state.turns
        return f"{id}, turns: {turns}\nGo on with it later: claw --resume {id}"

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
