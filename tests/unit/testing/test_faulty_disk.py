"""The disk that fails: at the call that was named, in the way that was named."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from claw.testing import FaultyDisk, Killed
from claw.testing.disk import Fault
from claw.workspace.disk import SystemDisk

FLAGS = os.O_WRONLY | os.O_CREAT


def write(disk: FaultyDisk, path: Path, data: bytes = b"12345678") -> int:
    fd = disk.open(str(path), FLAGS)
    written = disk.write(fd, data)
    disk.close(fd)
    return written


@pytest.mark.parametrize(("fault", "number"), [("EIO", errno.EIO), ("ENOSPC", errno.ENOSPC)])
def test_one_call_fails_and_does_nothing(tmp_path: Path, fault: Fault, number: int) -> None:
    disk = FaultyDisk(SystemDisk(), fail_at=2, fault=fault)
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        write(disk, tmp_path / "a")
    assert caught.value.errno == number
    assert (disk.hit, disk.calls) == (True, ["open", "write"])
    assert (tmp_path / "a").read_bytes() == b""
    assert write(disk, tmp_path / "a") == 8


def test_a_short_write_tells_the_truth_and_the_next_one_fails(tmp_path: Path) -> None:
    disk = FaultyDisk(SystemDisk(), fail_at=2, fault="short_write")
    fd = disk.open(str(tmp_path / "a"), FLAGS)
    assert disk.write(fd, b"12345678") == 4
    with pytest.raises(OSError, match="space"):
        disk.write(fd, b"5678")
    assert disk.write(fd, b"5678") == 4
    disk.close(fd)
    assert (tmp_path / "a").read_bytes() == b"12345678"


def test_a_lasting_fault_lasts_until_it_is_healed(tmp_path: Path) -> None:
    disk = FaultyDisk(SystemDisk(), fail_at=1, fault="ENOSPC", lasting=True)
    for _ in range(3):
        with pytest.raises(OSError, match="space"):
            write(disk, tmp_path / "a")
    disk.heal()
    assert write(disk, tmp_path / "a") == 8


def test_a_close_that_fails_closes(tmp_path: Path) -> None:
    disk = FaultyDisk(SystemDisk(), fail_at=2)
    fd = disk.open(str(tmp_path / "a"), FLAGS)
    with pytest.raises(OSError, match="error"):
        disk.close(fd)
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(fd)


@pytest.mark.parametrize(
    ("fault", "left"), [("kill", b""), ("torn_write", b"1234"), ("late_kill", b"12345678")]
)
def test_a_killed_process_does_nothing_more(tmp_path: Path, fault: Fault, left: bytes) -> None:
    disk = FaultyDisk(SystemDisk(), fail_at=3, fault=fault)
    fd = disk.open(str(tmp_path / "a"), FLAGS)
    disk.flock(fd)
    with pytest.raises(Killed):
        disk.write(fd, b"12345678")
    with pytest.raises(Killed):
        disk.close(fd)
    assert (tmp_path / "a").read_bytes() == left
    other = SystemDisk()
    again = other.open(str(tmp_path / "a"), os.O_RDWR)
    other.flock(again)  # what the dead held is free
    other.close(again)
