"""A key that tools print, however often and wherever it stands, is nowhere on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import Workplace

KEY = "tr0ub4dor-and-3-horses"
SHAPED = "sk-ant-api03-" + "abcDEF0123" * 4
CAT = "cat key.txt"

# At every place modulo all that output is cut at: 20,000 and 8,000 characters, 64 KiB.
EVERYWHERE = """
i=0
while [ $i -lt 3000 ]; do i=$((i+1)); printf "%s%*s" "$MY_API_KEY" $((i % 89 + 1)) x; done
"""
MORE_THAN_IS_KEPT = 'yes "$MY_API_KEY" | head -n 420000'


@pytest.mark.parametrize(
    "command",
    ["echo $MY_API_KEY", CAT, f"{CAT} >&2; exit 3", EVERYWHERE, MORE_THAN_IS_KEPT, "ls"],
    ids=["variable", "file", "error", "everywhere", "more than is kept", "name"],
)
async def test_a_planted_key_is_in_no_journal_blob_or_log(tmp_path: Path, command: str) -> None:
    place = Workplace(tmp_path)
    settings = place.home / ".claw/settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"env": {"MY_API_KEY": KEY}}))
    (place.work / "key.txt").write_text(f"key = {KEY}\n{SHAPED}\n" * 5000)
    (place.work / f"{KEY}.txt").write_text("x")
    script = place.script(
        {"calls": [{"name": "Bash", "input": {"command": command}}]},
        {"calls": [{"name": "Read", "input": {"file_path": "key.txt"}}]},
        {"calls": [{"name": "Grep", "input": {"pattern": "key", "output_mode": "content"}}]},
        {"calls": [{"name": "Glob", "input": {"pattern": "*"}}]},
        "Done.",
    )
    ended = await place.run(
        "-p", "go", "--permission-mode", "bypassPermissions", "--model", script, "--debug"
    )  # fmt: skip
    assert (ended.code, ended.out) == (0, "Done.\n"), ended.err
    kept = {p: p.read_bytes() for p in (place.home / ".claw").rglob("*") if p.is_file()}
    del kept[settings]
    assert any(path.parent.name.endswith(".blobs") for path in kept)
    assert any(path.parent.name == "logs" for path in kept)
    assert any(b"[redacted:MY_API_KEY]" in data for data in kept.values())
    for path, data in kept.items():
        for part in (KEY, KEY[:12], KEY[-12:], SHAPED[:24]):
            assert part.encode() not in data, f"{part} is in {path.name}"
