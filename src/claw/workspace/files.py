"""Files beneath a root, opened so that what was judged is what is touched."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from claw.errors import ToolFailed
from claw.ports import Disk, FileContent
from claw.types.effects import Effect, Facts, Observed, ReadPath, WritePath
from claw.workspace.disk import SystemDisk
from claw.workspace.git_directory import linked_git_directory
from claw.workspace.opening import open_regular, parent_of, real_path
from claw.workspace.replacing import current_file, digest, read_all, replace_file
from claw.workspace.sensitive import is_private, why_obeyed, why_protected
from claw.workspace.walking import similar_files, walk

__all__ = ["LocalWorkspace"]

_MOST_OBSERVED = 4096  # paths remembered from observe() to the moment they are opened
_LONGEST = 4095  # bytes of a path; what is made deeper, other programs cannot open
_REASONS = {
    errno.EISDIR: "is a directory. Use Glob to see what is in it.",
    errno.EINVAL: "is not a regular file but a device, pipe or socket: not opened.",
    errno.ENOTDIR: "runs through something that is not a directory, or through a link "
    "that was put there just now.",
    errno.ELOOP: "is a loop of symbolic links.",
    errno.EACCES: "may not be accessed: permission denied.",
    errno.EPERM: "may not be accessed: operation not permitted.",
    errno.ENAMETOOLONG: "is too long for a path or a file name.",
    errno.ENOSPC: "could not be written: the disk is full. Nothing was changed.",
    errno.EROFS: "is on a read-only file system.",
}


class LocalWorkspace:
    """``ports.Workspace`` on this machine's file system.

    ``root`` and ``added_dirs`` are what counts as inside. ``own_dirs`` are claw's
    (the results that it kept): to be read like the workspace, never to be written.
    ``home`` is where ``~`` leads. Raises ``ToolFailed`` where ``root`` is no directory.
    """

    def __init__(
        self,
        root: str,
        added_dirs: Sequence[str] = (),
        *,
        own_dirs: Sequence[str] = (),
        home: str = "",
        disk: Disk | None = None,
    ) -> None:
        self._root = os.path.realpath(root)
        self.probe()
        self._inside = (self._root, *(os.path.realpath(path) for path in added_dirs))
        self._own = tuple(os.path.realpath(path) for path in own_dirs)
        self._home = os.path.realpath(home or os.path.expanduser("~"))
        self._disk = disk or SystemDisk()
        self._observed: dict[str, str] = {}

    @property
    def root(self) -> str:
        return self._root

    def probe(self) -> None:
        if not os.path.isdir(self._root):
            raise ToolFailed(f"The workspace {self._root} does not exist (any more).")

    def observe(self, effects: Sequence[Effect]) -> Facts:
        paths = [effect.path for effect in effects if isinstance(effect, ReadPath | WritePath)]
        # Once a path, so that all effects on it are judged by one answer.
        reals = {path: self._resolve(path) for path in dict.fromkeys(paths)}
        return Facts(tuple(self._look_at(effect, reals) for effect in effects))

    def read(self, path: str, *, limit: int) -> FileContent:
        real = self._resolve_file(path)
        with self._translated(path), parent_of(real, self._base(real)) as (directory, name):
            fd, found = open_regular(directory, name)
            try:
                if found.st_size > limit:
                    raise ToolFailed(
                        f"{_brief(path)} has {found.st_size:,} bytes, more than the {limit:,} "
                        "that are read at once. Use Grep, or Bash with `head`, `tail` or `sed -n`."
                    )
                data = read_all(fd, found.st_size)
            finally:
                os.close(fd)
        return FileContent(data, real, digest(data), stat.S_IMODE(found.st_mode))

    def peek(self, path: str, *, limit: int) -> FileContent | None:
        real = self._resolve_file(path)
        return self.read(path, limit=limit) if os.path.lexists(real) else None

    def write(
        self, path: str, data: bytes, *, expect: str | None, mode: int | None = None
    ) -> FileContent:
        real = self._resolve_file(path)
        create = self._disk if expect is None else None
        with (
            self._translated(path),
            parent_of(real, self._base(real), create=create) as (directory, name),
        ):
            before = current_file(directory, name, _brief(path), expect)
            became = replace_file(
                directory, name, _brief(path), data, before, disk=self._disk, mode=mode
            )
        return FileContent(data, real, digest(data), became)

    def remove(self, path: str, *, expect: str) -> None:
        real = self._resolve_file(path)
        with self._translated(path), parent_of(real, self._base(real)) as (directory, name):
            current_file(directory, name, _brief(path), expect)
            self._disk.unlink(name, dir_fd=directory)

    def files(self, path: str, *, limit: int) -> Sequence[str]:
        real = self._resolve_again(path)
        with self._translated(path):
            if os.path.isfile(real):
                return (self._relative(real) or real,)
            os.scandir(real).close()
        found: list[str] = []
        for file in walk(real):
            if len(found) >= limit:
                break
            found.append(self._relative(file) or file)
        return sorted(found)

    # -- from a path to the place it leads to

    def _look_at(self, effect: Effect, reals: Mapping[str, str]) -> Observed:
        if not isinstance(effect, ReadPath | WritePath):
            return Observed(effect, real=self._root)
        real = reals[effect.path]
        while len(self._observed) >= _MOST_OBSERVED:
            del self._observed[next(iter(self._observed))]
        self._observed[effect.path] = real
        writes = isinstance(effect, WritePath)
        return Observed(
            effect,
            real=real,
            relative=self._relative(real),
            inside=bool(self._inside_of(real)) or (not writes and self._is_own(real)),
            protected=self._why_protected(real) if writes else "",
            private=is_private(real),
            obeyed=why_obeyed(real, inside_of=self._inside_of(real)) if writes else "",
        )

    def _resolve(self, path: str) -> str:
        if not path:
            raise ToolFailed("The path is empty. Give a path relative to the workspace.")
        if "\0" in path:
            raise ToolFailed("The path contains a NUL character; no file has such a name.")
        full = os.path.join(self._root, self._without_tilde(path))
        try:
            if len(full.encode()) > _LONGEST:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
            real = real_path(full)
            real.encode()  # what cannot be shown cannot be put on record either
        except (OSError, UnicodeError) as error:
            raise self._explain(error, path) from error
        if real.startswith(("/proc/", "/sys/")):
            raise ToolFailed(
                f"{_brief(path)} leads to {_brief(real)}, which is no stored file "
                "but a view of the kernel: file tools do not touch it."
            )
        return real

    def _resolve_again(self, path: str) -> str:
        """Refuses where ``path`` now leads elsewhere than when it was observed."""
        real = self._resolve(path)
        if self._observed.get(path, real) != real:
            raise ToolFailed(
                f"{_brief(path)} leads elsewhere than a moment ago, when it was checked: "
                "nothing was touched. Try again."
            )
        return real

    def _resolve_file(self, path: str) -> str:
        if path.endswith("/"):
            raise ToolFailed(
                f"{_brief(path)} ends with a slash, so it names a directory, not a file."
            )
        return self._resolve_again(path)

    def _without_tilde(self, path: str) -> str:
        if path == "~" or path.startswith("~/"):
            return self._home + path[1:]
        return path

    def _inside_of(self, real: str) -> str:
        """The innermost directory of ours that holds ``real``; empty where none does."""
        above = (d for d in self._inside if real == d or real.startswith(d.rstrip("/") + "/"))
        return max(above, key=len, default="")

    def _is_own(self, real: str) -> bool:
        return any(real == d or real.startswith(d.rstrip("/") + "/") for d in self._own)

    def _base(self, real: str) -> str:
        """The trusted directory from which the way to ``real`` is walked."""
        above = self._inside_of(real)
        return above if above and above != real else "/"

    def _relative(self, real: str) -> str:
        if real == self._root:
            return "."
        prefix = self._root.rstrip("/") + "/"
        return real[len(prefix) :] if real.startswith(prefix) else ""

    def _why_protected(self, real: str) -> str:
        gits = [git for directory in self._inside if (git := linked_git_directory(directory))]
        return why_protected(
            real,
            inside_of=self._inside_of(real),
            home=self._home,
            guarded=(*self._own, *gits),
        )

    # -- messages

    @contextmanager
    def _translated(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._explain(error, path) from error

    def _explain(self, error: OSError | UnicodeError, path: str) -> ToolFailed:
        if isinstance(error, UnicodeError):
            return ToolFailed("The path contains characters that no file name can have.")
        shown = _brief(path)
        if isinstance(error, FileNotFoundError):
            return ToolFailed(f"{shown} does not exist.{self._what_was_meant(path)}")
        why = _REASONS.get(error.errno or 0, f"failed: {error.strerror}")
        return ToolFailed(f"{shown} {why}")

    def _what_was_meant(self, path: str) -> str:
        full = os.path.normpath(os.path.join(self._root, self._without_tilde(path)))
        # Outside, names are told only by what policy allows to be read.
        found = similar_files(full, self._root) if self._inside_of(full) else []
        similar = [_brief(self._relative(file) or file) for file in found]
        if similar:
            return f" Did you mean {' or '.join(similar)}?"
        return f" Paths are relative to {self._root}."


def _brief(path: str) -> str:
    return path if len(path) <= 200 else path[:200] + "..."
