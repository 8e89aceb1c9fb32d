"""Read: a text file with line numbers."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from claw.errors import ToolFailed
from claw.ports import FileContent, ToolCall, Workspace
from claw.tools.arguments import parse_arguments
from claw.tools.descriptions import description, schema
from claw.tools.encoding import DecodedText, decode_text, kind_of_binary
from claw.tools.ledger import ReadLedger
from claw.types.effects import Effect, ReadPath
from claw.types.tools import ToolOutput, ToolSpec

__all__ = ["MOST_BYTES", "Read", "ReadArguments"]

MOST_BYTES = 32 * 1024 * 1024  # of a file that is read or edited as a whole
_LINES = 2000
_LINE_WIDTH = 2000
_MOST_SHOWN = 256_000  # characters of one result


class ReadArguments(msgspec.Struct, frozen=True):
    file_path: Annotated[str, Meta(description="Absolute, or relative to the workspace")]
    offset: Annotated[int, Meta(ge=0, description="First line, from 1")] = 1
    limit: Annotated[int, Meta(ge=1, description="Number of lines")] = _LINES


class Read:
    def __init__(self, workspace: Workspace, ledger: ReadLedger) -> None:
        self._workspace = workspace
        self._ledger = ledger
        self.spec = ToolSpec(
            name="Read",
            description=description("read"),
            input_schema=schema("read"),
            aliases=("read_file",),
            read_only=True,
        )

    def parse(self, input: dict[str, Any]) -> ReadArguments:
        aliases = {"path": "file_path", "filePath": "file_path", "filename": "file_path"}
        return parse_arguments("Read", ReadArguments, input, aliases)

    def effects(self, args: ReadArguments) -> tuple[Effect, ...]:
        return (ReadPath(args.file_path),)

    def preview(self, args: ReadArguments) -> str:
        return f"Read {args.file_path}"

    async def run(self, args: ReadArguments, call: ToolCall) -> ToolOutput:
        content = self._workspace.read(args.file_path, limit=MOST_BYTES)
        kind = kind_of_binary(content.data)
        if kind:
            raise ToolFailed(f"{content.real} is a {kind}; those cannot be shown yet.")
        decoded = decode_text(content.data)
        if decoded is None:
            size = len(content.data)
            return ToolOutput.of(f"{content.real} is a binary file of {size:,} bytes: not shown.")
        self._ledger.note(content.real, content.digest)
        text, shown = _numbered(content, decoded, max(args.offset, 1), args.limit)
        return ToolOutput.of(text, display=f"{shown} line{'' if shown == 1 else 's'}")


def _numbered(
    content: FileContent, decoded: DecodedText, offset: int, limit: int
) -> tuple[str, int]:
    lines = decoded.text.split("\n")
    if lines[-1] == "":
        lines.pop()  # the end of the last line, not a line of its own
    if not lines:
        return f"{content.real} is empty.", 0
    if offset > len(lines):
        raise ToolFailed(f"{content.real} has {len(lines)} lines; offset {offset} is after them.")
    shown: list[str] = []
    size = 0
    for number, line in enumerate(lines[offset - 1 : offset - 1 + limit], offset):
        shown.append(f"{number:>6}\t{_cut(line.removesuffix(chr(13)))}")
        size += len(shown[-1])
        if size > _MOST_SHOWN:
            break
    last = offset + len(shown) - 1
    part = "" if len(shown) == len(lines) else f", lines {offset}-{last} of {len(lines)}"
    head = f"{content.real}{part}{_remarks(decoded)}"
    more = f"\n[{len(lines) - last} more lines: offset {last + 1}]" if last < len(lines) else ""
    return "\n".join([head, *shown]) + more, len(shown)


def _remarks(decoded: DecodedText) -> str:
    remarks = []
    if not decoded.exact:
        remarks.append("not UTF-8, read as Latin-1; Edit refuses it")
    elif decoded.encoding != "utf-8":
        remarks.append(decoded.encoding)
    if "\r\n" in decoded.text:
        remarks.append("CRLF line endings")
    return f" ({'; '.join(remarks)})" if remarks else ""


def _cut(line: str) -> str:
    if len(line) <= _LINE_WIDTH:
        return line
    return f"{line[:_LINE_WIDTH]}... [{len(line) - _LINE_WIDTH:,} more characters]"
