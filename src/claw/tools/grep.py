"""Grep: lines by a regular expression."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from claw.ports import ToolCall, Workspace
from claw.tools.arguments import brief, parse_arguments
from claw.tools.descriptions import description, schema
from claw.tools.query import Found, Hit, Query, Searcher
from claw.types.effects import Effect, ReadPath
from claw.types.tools import ToolOutput, ToolSpec

__all__ = ["Grep", "GrepArguments"]

_MOST = 250
_HIGHEST = 5000

Lines = Annotated[int, Meta(ge=0, le=1000)]


class GrepArguments(msgspec.Struct, frozen=True):
    pattern: Annotated[str, Meta(min_length=1)]
    path: Annotated[str, Meta(description="File or directory, default the workspace")] = "."
    glob: Annotated[str, Meta(description="Only these files, like `*.{ts,tsx}`")] = ""
    type: Annotated[str, Meta(description="Only files of this type, like `py` or `rust`")] = ""
    output_mode: Literal["files_with_matches", "content", "count"] = "files_with_matches"
    ignore_case: Annotated[bool, Meta(description="Ignore case")] = msgspec.field(
        name="-i", default=False
    )
    after: Annotated[Lines, Meta(description="Lines after each match")] = msgspec.field(
        name="-A", default=0
    )
    before: Annotated[Lines, Meta(description="Lines before each match")] = msgspec.field(
        name="-B", default=0
    )
    around: Annotated[Lines, Meta(description="Lines around each match")] = msgspec.field(
        name="-C", default=0
    )
    multiline: Annotated[bool, Meta(description="Let `.` and matches span lines")] = False
    head_limit: Annotated[int, Meta(ge=0, description="Results shown, default 250")] = _MOST


class Grep:
    def __init__(self, workspace: Workspace, searcher: Searcher) -> None:
        self._workspace = workspace
        self._searcher = searcher
        self.spec = ToolSpec(
            name="Grep",
            description=description("grep"),
            input_schema=schema("grep"),
            aliases=("grep_search",),
            read_only=True,
        )

    def parse(self, input: dict[str, Any]) -> GrepArguments:
        aliases = {
            "query": "pattern",
            "regex": "pattern",
            "file_path": "path",
            "directory": "path",
            "include": "glob",
            "mode": "output_mode",
            "case_insensitive": "-i",
            "ignore_case": "-i",
            "after": "-A",
            "before": "-B",
            "context": "-C",
            "limit": "head_limit",
        }
        # Line numbers are always shown.
        given = {key: value for key, value in input.items() if key != "-n"}
        return parse_arguments("Grep", GrepArguments, given, aliases)

    def effects(self, args: GrepArguments) -> tuple[Effect, ...]:
        return (ReadPath(args.path),)

    def preview(self, args: GrepArguments) -> str:
        return f"Search {args.path} for {args.pattern}"

    async def run(self, args: GrepArguments, call: ToolCall) -> ToolOutput:
        self._workspace.files(args.path, limit=1)  # says what is wrong with a path
        [seen] = self._workspace.observe((ReadPath(args.path),)).observed
        query = Query(
            pattern=args.pattern,
            path=seen.relative or seen.real,
            mode=args.output_mode,
            glob=args.glob,
            type=args.type,
            ignore_case=args.ignore_case,
            multiline=args.multiline,
            before=args.before or args.around,
            after=args.after or args.around,
            private=seen.private,
            most=min(args.head_limit or _HIGHEST, _HIGHEST),
        )
        found = await self._searcher.lines(query)
        text, count = _rendered(found, query)
        return ToolOutput.of(text, display=count)


def _rendered(found: Found, query: Query) -> tuple[str, str]:
    """The result for the model, and its first line for the person."""
    notes = [f"[{note}]" for note in found.notes]
    shown = found.hits[: query.most]
    if len(found.hits) > len(shown):
        notes.append(f"[the first {len(shown)} are shown: narrow the search or raise `head_limit`]")
    if not found.hits:
        return "\n".join(
            [f"No matches for `{brief(query.pattern)}` in `{brief(query.path)}`.", *notes]
        ), "no matches"
    files = len({hit.path for hit in found.hits})
    if query.mode == "files_with_matches":
        count = f"Found {_number(files, 'file')}"
        lines = [hit.path for hit in shown]
    elif query.mode == "count":
        total = sum(hit.number for hit in found.hits)
        count = f"Found {_number(total, 'occurrence')} in {_number(files, 'file')}"
        lines = [f"{hit.path}:{hit.number}" for hit in shown]
    else:
        total = sum(hit.matched for hit in found.hits)
        more = "at least " if len(found.hits) > len(shown) else ""
        count = f"Found {more}{_number(total, 'matching line')} in {_number(files, 'file')}"
        lines = []
        for position, hit in enumerate(shown):
            lines += ["--"] * (position in found.gaps and position > 0)
            lines.append(_line(hit))
    return "\n".join([count, *lines, *notes]), count


def _line(hit: Hit) -> str:
    mark = ":" if hit.matched else "-"
    return f"{hit.path}{mark}{hit.number}{mark}{hit.text}"


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + "s" * (count != 1)
