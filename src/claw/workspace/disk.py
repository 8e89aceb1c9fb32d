"""``Disk`` on this machine: each call as the system has it, and nothing else."""

from __future__ import annotations

import fcntl
import os

__all__ = ["SystemDisk"]


class SystemDisk:
    """Implements ``ports.Disk``."""

    def open(self, path: str, flags: int, mode: int = 0o600, *, dir_fd: int | None = None) -> int:
        return os.open(path, flags, mode, dir_fd=dir_fd)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        return os.write(fd, data)

    def fsync(self, fd: int) -> None:
        os.fsync(fd)

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def chmod(self, fd: int, mode: int) -> None:
        os.fchmod(fd, mode)

    def chown(self, fd: int, uid: int, gid: int) -> None:
        os.fchown(fd, uid, gid)

    def flock(self, fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self, fd: int) -> None:
        os.close(fd)

    def rename(self, source: str, target: str, *, dir_fd: int | None = None) -> None:
        os.rename(source, target, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)

    def link(self, source: str, target: str, *, dir_fd: int | None = None) -> None:
        os.link(source, target, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)

    def unlink(self, path: str, *, dir_fd: int | None = None) -> None:
        os.unlink(path, dir_fd=dir_fd)

    def mkdir(self, path: str, mode: int = 0o700, *, dir_fd: int | None = None) -> None:
        os.mkdir(path, mode, dir_fd=dir_fd)

    def rmdir(self, path: str) -> None:
        os.rmdir(path)
