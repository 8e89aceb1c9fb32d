"""Glob: files by name."""

from __future__ import annotations

import os
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from claw.ports import ToolCall, Workspace
from claw.tools.arguments import brief, parse_arguments
from claw.tools.descriptions import description, schema
from claw.tools.patterns import literal_prefix, path_matcher
from claw.tools.query import Searcher
from claw.types.effects import Effect, ReadPath
from claw.types.tools import ToolOutput, ToolSpec

__all__ = ["Glob", "GlobArguments"]

_MOST = 200


class GlobArguments(msgspec.Struct, frozen=True):
    pattern: Annotated[str, Meta(min_length=1)]
    path: Annotated[str, Meta(description="Directory to search, default the workspace")] = "."


class Glob:
    def __init__(self, workspace: Workspace, searcher: Searcher) -> None:
        self._workspace = workspace
        self._searcher = searcher
        self.spec = ToolSpec(
            name="Glob",
            description=description("glob"),
            input_schema=schema("glob"),
            aliases=("glob_search",),
            read_only=True,
        )

    def parse(self, input: dict[str, Any]) -> GlobArguments:
        aliases = {"glob": "pattern", "directory": "path", "dir": "path", "file_path": "path"}
        return parse_arguments("Glob", GlobArguments, input, aliases)

    def effects(self, args: GlobArguments) -> tuple[Effect, ...]:
        return (ReadPath(_where(args)[0]),)

    def preview(self, args: GlobArguments) -> str:
        return f"Find {args.pattern} in {args.path}"

    async def run(self, args: GlobArguments, call: ToolCall) -> ToolOutput:
        base, rest = _where(args)
        matches = path_matcher(rest)
        self._workspace.files(base, limit=1)  # says what is wrong with a path
        [seen] = self._workspace.observe((ReadPath(base),)).observed
        found = await self._searcher.files(seen.relative or seen.real, matches)
        paths = [hit.path for hit in found.hits]
        notes = [f"[{note}]" for note in found.notes]
        if not paths:
            said = f"No files match `{brief(args.pattern)}` in `{brief(args.path)}`."
            return ToolOutput.of("\n".join([said, *notes]), display="no files")
        count = f"Found {len(paths)} file{'s' * (len(paths) != 1)}"
        if len(paths) > _MOST:
            notes.append(f"[the first {_MOST} are shown: narrow the pattern]")
        return ToolOutput.of("\n".join([count, *paths[:_MOST], *notes]), display=count)


def _where(args: GlobArguments) -> tuple[str, str]:
    """The directory to walk, and the pattern relative to it, which then has a slash.

    Leading directories of the pattern are part of the walk's start, so that
    what is judged is where the walk goes.
    """
    if "/" not in args.pattern:
        return args.path, args.pattern
    prefix, rest = literal_prefix(args.pattern)
    if not rest:  # no wildcard: the path of one file
        prefix, rest = os.path.split(args.pattern)
    if prefix.startswith("~"):
        base = prefix
    else:
        base = os.path.join(args.path, prefix) if prefix else args.path
    return base, rest if "/" in rest else f"./{rest}"
