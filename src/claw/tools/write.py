"""Write: a whole file, new or in place of one that was read."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from claw.errors import ToolFailed
from claw.ports import FileContent, ToolCall, Workspace
from claw.tools.arguments import parse_arguments
from claw.tools.descriptions import description, schema
from claw.tools.diff import whole_diff
from claw.tools.encoding import decode_text
from claw.tools.ledger import ReadLedger
from claw.tools.read import MOST_BYTES
from claw.types.effects import Effect, WritePath
from claw.types.tools import ToolOutput, ToolSpec

__all__ = ["Write", "WriteArguments"]


class WriteArguments(msgspec.Struct, frozen=True):
    file_path: Annotated[str, Meta(description="Absolute, or relative to the workspace")]
    content: Annotated[str, Meta(description="The whole new content")]


class Write:
    def __init__(self, workspace: Workspace, ledger: ReadLedger) -> None:
        self._workspace = workspace
        self._ledger = ledger
        self.spec = ToolSpec(
            name="Write",
            description=description("write"),
            input_schema=schema("write"),
            aliases=("write_file",),
        )

    def parse(self, input: dict[str, Any]) -> WriteArguments:
        aliases = {
            "path": "file_path",
            "filePath": "file_path",
            "filename": "file_path",
            "text": "content",
            "contents": "content",
        }
        return parse_arguments("Write", WriteArguments, input, aliases)

    def effects(self, args: WriteArguments) -> tuple[Effect, ...]:
        return (WritePath(args.file_path),)

    def preview(self, args: WriteArguments) -> str:
        """The diff against what was read; the content itself where nothing can be compared."""
        try:
            before = self._current(args.file_path)
        except ToolFailed:
            before = None
        if before is None:
            return f"Create {args.file_path}\n{args.content}"
        if self._ledger.seen(before.real) != before.digest:  # its content is nobody's business
            return f"Replace {args.file_path}, unless it still has to be read\n{args.content}"
        return f"Replace {args.file_path}\n{_difference(before, args.content)}"

    async def run(self, args: WriteArguments, call: ToolCall) -> ToolOutput:
        try:
            data = args.content.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ToolFailed("The content has characters that cannot be stored.") from error
        before = self._current(args.file_path)
        expect = None if before is None else self._ledger.seen(before.real)
        written = self._workspace.write(args.file_path, data, expect=expect)
        self._ledger.note(written.real, written.digest)
        lines = args.content.count("\n") + (not args.content.endswith("\n") and bool(data))
        count = f"{lines:,} line" + "s" * (lines != 1)
        if before is None:
            return ToolOutput.of(f"Created {written.real} ({count}).")
        return ToolOutput.of(
            f"Replaced {written.real} ({count}).",
            display=_difference(before, args.content),
        )

    def _current(self, path: str) -> FileContent | None:
        try:
            there = self._workspace.files(path, limit=1)
        except ToolFailed:
            there = ()
        if not there:  # nothing, or nothing that is a file: writing will say so
            return None
        return self._workspace.read(path, limit=MOST_BYTES)


def _difference(before: FileContent, after: str) -> str:
    decoded = decode_text(before.data)
    return "(binary)" if decoded is None else whole_diff(decoded.text, after)
