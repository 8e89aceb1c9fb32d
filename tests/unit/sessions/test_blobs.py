"""Blobs: the same bytes under the same name, in files and in memory."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.errors import SessionError
from claw.ports import Blobs
from claw.sessions.blobs import FileBlobs, MemoryBlobs, blobs_dir
from claw.testing import FaultyDisk
from claw.workspace.disk import SystemDisk


@pytest.fixture(params=["file", "memory"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    return (
        FileBlobs(str(tmp_path / "s1.blobs"), SystemDisk())
        if request.param == "file"
        else MemoryBlobs()
    )


def test_what_was_put_comes_back(blobs: Blobs) -> None:
    first, second = blobs.put(b"one"), blobs.put(b"two")
    assert blobs.put(b"one") == first != second
    assert (blobs.get(first), blobs.get(second)) == (b"one", b"two")


@pytest.mark.parametrize("digest", ["0" * 64, "", "../s1.jsonl", "A" * 64])
def test_an_unknown_digest_is_an_error(blobs: Blobs, digest: str) -> None:
    with pytest.raises(SessionError, match="no file"):
        blobs.get(digest)


def test_files_are_private_and_made_when_needed(tmp_path: Path) -> None:
    directory = Path(blobs_dir(str(tmp_path / "s1.jsonl")))
    blobs = FileBlobs(str(directory), SystemDisk())
    assert directory.name == "s1.blobs"
    assert not directory.exists()
    path = blobs.path(blobs.put(b"one"))
    assert path is not None
    assert Path(path).read_bytes() == b"one"
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o400
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert len(list(directory.iterdir())) == 1


def test_a_damaged_file_is_noticed_and_replaced(tmp_path: Path) -> None:
    blobs = FileBlobs(str(tmp_path), SystemDisk())
    digest = blobs.put(b"one")
    file = tmp_path / digest
    file.chmod(0o600)
    file.write_bytes(b"two")
    with pytest.raises(SessionError, match="damaged"):
        blobs.get(digest)
    again = FileBlobs(str(tmp_path), SystemDisk())
    assert again.get(again.put(b"one")) == b"one"
    file.chmod(0o600)
    file.write_bytes(b"o")
    assert blobs.get(blobs.put(b"one")) == b"one"


def test_what_was_put_is_synced_once(tmp_path: Path) -> None:
    disk = FaultyDisk(SystemDisk())
    blobs = FileBlobs(str(tmp_path / "s1.blobs"), disk)
    names = {blobs.put(data) for data in (b"one", b"two", b"one")}
    blobs.put(b"three")
    assert "fsync" not in disk.calls
    blobs.sync(names)
    assert disk.calls.count("fsync") == 4  # two files, their directory, and the one above
    blobs.sync(names)
    assert disk.calls.count("fsync") == 4


def test_a_directory_that_cannot_be_made_is_a_session_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SessionError):
        FileBlobs(str(tmp_path / "file" / "s1.blobs"), SystemDisk()).put(b"one")


def test_memory_has_no_paths() -> None:
    blobs = MemoryBlobs()
    assert blobs.path(blobs.put(b"one")) is None


@given(st.binary(max_size=100))
def test_both_stores_name_alike(data: bytes) -> None:
    assert MemoryBlobs().put(data) == MemoryBlobs().put(bytes(data))
