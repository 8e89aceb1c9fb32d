"""Edit: replace an exact text in a file; every other byte stays.

A file that was read and has changed since is refused. One that was not read may
be edited: an exact, unique match shows that its content is known.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from claw.errors import ToolFailed
from claw.ports import FileContent, ToolCall, Workspace
from claw.tools.arguments import brief, parse_arguments
from claw.tools.descriptions import description, schema
from claw.tools.diff import Span, hunks
from claw.tools.encoding import DecodedText, decode_text
from claw.tools.ledger import ReadLedger
from claw.tools.read import MOST_BYTES
from claw.types.effects import Effect, ReadPath, WritePath
from claw.types.tools import ToolOutput, ToolSpec

__all__ = ["Edit", "EditArguments"]

_MOST_COMPARED = 5000  # lines searched for something like the text that was not found


class EditArguments(msgspec.Struct, frozen=True):
    file_path: Annotated[str, Meta(description="Absolute, or relative to the workspace")]
    old_string: Annotated[str, Meta(description="The exact text to replace")]
    new_string: Annotated[str, Meta(description="What stands there afterwards")]
    replace_all: Annotated[bool, Meta(description="Replace every occurrence")] = False


class Edit:
    def __init__(self, workspace: Workspace, ledger: ReadLedger) -> None:
        self._workspace = workspace
        self._ledger = ledger
        self.spec = ToolSpec(
            name="Edit",
            description=description("edit"),
            input_schema=schema("edit"),
            aliases=("edit_file",),
        )

    def parse(self, input: dict[str, Any]) -> EditArguments:
        aliases = {
            "path": "file_path",
            "filePath": "file_path",
            "old_str": "old_string",
            "oldString": "old_string",
            "new_str": "new_string",
            "newString": "new_string",
            "replaceAll": "replace_all",
        }
        args = parse_arguments("Edit", EditArguments, input, aliases)
        if not args.old_string:
            raise ToolFailed("`old_string` is empty. To create a file or replace all, use Write.")
        if args.old_string == args.new_string:
            raise ToolFailed("`old_string` and `new_string` are the same: nothing would change.")
        return args

    def effects(self, args: EditArguments) -> tuple[Effect, ...]:
        # What it says of a change, or of a text that was not found, shows the file.
        return (WritePath(args.file_path), ReadPath(args.file_path))

    def preview(self, args: EditArguments) -> str:
        try:
            _, decoded = self._open(args)
            change = hunks(decoded.text, _spans(args, decoded.text))
        except ToolFailed as failed:  # it will fail the same way when it runs
            change = failed.message
        return f"Edit {args.file_path}\n{change}"

    async def run(self, args: EditArguments, call: ToolCall) -> ToolOutput:
        content, decoded = self._open(args)
        spans = _spans(args, decoded.text)
        try:
            data = decoded.encoded(_replaced(decoded.text, spans))
        except UnicodeError as error:
            raise ToolFailed("`new_string` has characters that cannot be stored.") from error
        written = self._workspace.write(args.file_path, data, expect=content.digest)
        self._ledger.note(written.real, written.digest)
        shown = hunks(decoded.text, spans)
        times = "" if len(spans) == 1 else f", {len(spans)} places"
        return ToolOutput.of(f"Edited {written.real}{times}.\n{shown}", display=shown)

    def _open(self, args: EditArguments) -> tuple[FileContent, DecodedText]:
        content = self._workspace.read(args.file_path, limit=MOST_BYTES)
        if self._ledger.seen(content.real) not in (None, content.digest):
            raise ToolFailed(f"{content.real} was changed since it was read. Read it again.")
        decoded = decode_text(content.data)
        if decoded is None or not decoded.exact:
            raise ToolFailed(
                f"{content.real} is neither UTF-8 nor UTF-16 with a byte order mark: editing it "
                "could damage it. Use Bash with a tool that knows its encoding."
            )
        if decoded.mark and "\ufeff" in args.old_string:
            decoded = decoded.with_mark_as_text()
        return content, decoded


def _spans(args: EditArguments, text: str) -> list[Span]:
    starts: list[int] = []
    start = text.find(args.old_string)
    while start >= 0:
        starts.append(start)
        start = text.find(args.old_string, start + len(args.old_string))
    if not starts:
        raise ToolFailed(_not_found(args, text))
    again = text.find(args.old_string, starts[0] + 1)
    if again >= 0 and not args.replace_all:
        lines = ", ".join(
            str(text.count("\n", 0, s) + 1)
            for s in (starts if starts[1:] else [starts[0], again])[:10]
        )
        raise ToolFailed(
            f"`old_string` occurs {max(len(starts), 2)} times (lines {lines}). Include more "
            "of the surrounding text, or set `replace_all`."
        )
    return [Span(start, args.old_string, args.new_string) for start in starts]


def _replaced(text: str, spans: list[Span]) -> str:
    pieces: list[str] = []
    done = 0
    for span in spans:
        pieces += (text[done : span.start], span.new)
        done = span.start + len(span.old)
    return "".join(pieces) + text[done:]


def _not_found(args: EditArguments, text: str) -> str:
    said = f"`old_string` was not found in {brief(args.file_path)}; nothing was changed."
    if "\r\n" in text and "\r" not in args.old_string and "\n" in args.old_string:
        with_endings = args.old_string.replace("\n", "\r\n")
        if with_endings in text:
            return (
                f"{said} The file's lines end in CRLF, which must be matched exactly so far: "
                "write \\r\\n for every line end in `old_string` and `new_string`."
            )
    near = _nearest(args.old_string, text)
    return f"{said} The nearest lines are:\n{near}" if near else f"{said} Read it again."


def _nearest(wanted: str, text: str) -> str:
    """Numbered lines that resemble the first line that was wanted."""
    import difflib

    first = next((line.strip() for line in wanted.split("\n") if line.strip()), "")
    lines = [line.rstrip("\r") for line in text.split("\n", _MOST_COMPARED)[:_MOST_COMPARED]]
    stripped = [line.strip()[:200] for line in lines]
    close = set(difflib.get_close_matches(first[:200], set(stripped), n=3, cutoff=0.6))
    found = [number for number, line in enumerate(stripped) if line and line in close][:5]
    return "\n".join(f"{number + 1:>6}\t{lines[number][:200]}" for number in found)
