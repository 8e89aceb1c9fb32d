"""`--record-wire`, as people call it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from claw.models.scripted import says
from claw.sessions.load import read_entries
from claw.testing.strict_server import StrictServer, answers, sent
from claw.types.entries import ReplyReceived
from tests.cli.running import Workplace
from tests.replay.wires import STREAM, body_of, streamed

KEY = "planted/key+of-a-test-0123"
SAYING = "Grüße, 世界 🎉"


def environment(server: StrictServer) -> dict[str, str]:
    return {"ANTHROPIC_BASE_URL": server.base_url, "ANTHROPIC_API_KEY": KEY}


def sessions(place: Workplace) -> list[Path]:
    return sorted(place.home.glob(".claw/sessions/*/*.jsonl"))


def replies(path: Path) -> list[ReplyReceived]:
    entries = (record.entry for record in read_entries(str(path)))
    return [entry for entry in entries if isinstance(entry, ReplyReceived)]


def assert_nowhere(secret: str, place: Workplace) -> None:
    for path in place.home.rglob("*"):
        assert path.is_dir() or secret.encode() not in path.read_bytes(), path


ASK = ("-p", "hello", "--model", "claude-opus-5-5")


async def test_the_bytes_are_in_the_session_and_the_key_is_not(place: Workplace):
    body = body_of("anthropic", says(SAYING))
    async with StrictServer([sent(streamed(body), every=1)]) as server:
        ended = await place.run(*ASK, "--record-wire", env=environment(server))
        assert server.requests[0].headers["x-api-key"] == KEY
    assert (ended.code, ended.out) == (0, f"{SAYING}\n")
    assert "wire" not in ended.err
    (path,) = sessions(place)
    (reply,) = replies(path)
    assert (path.with_suffix(".blobs") / reply.wire).read_bytes() == body
    assert_nowhere(KEY, place)
    ended = await place.run("replay", "latest")
    assert (ended.code, ended.out) == (0, "same: 1 turn, 1 step\n")
    page = place.work / "page.html"
    await place.run("export", "latest", "--format", "html", "--output", str(page))
    assert f"raw bytes were kept ({len(body):,})" in page.read_text()


@pytest.mark.parametrize(
    "quoted", [KEY, KEY.replace("/", "\\/"), KEY.replace("+", "\\u002b")], ids=range(3)
)
async def test_a_key_that_the_server_quotes_is_not_kept(place: Workplace, quoted: str):
    begun = body_of("anthropic", says(SAYING)).partition(b"event: content_block_stop")[0]
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "bad key: HERE"}}
    failed = json.dumps(error).replace("HERE", quoted)
    body = begun + f"event: error\ndata: {failed}\n\n".encode()
    async with StrictServer([answers(200, body, STREAM), says("done")]) as server:
        ended = await place.run(*ASK, "--record-wire", env=environment(server))
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "done")
    assert "warning: The raw bytes of this reply hold a secret: they are not kept." in ended.err
    broken, whole = replies(sessions(place)[0])
    assert (broken.wire, broken.wire_dialect, broken.wire_sizes) == ("", "", "")
    assert whole.wire
    for secret in (KEY, quoted):
        assert_nowhere(secret, place)


async def test_a_key_that_comes_in_pieces_is_not_kept_either(place: Workplace):
    async with StrictServer([sent(says(f"the key is {KEY}"), every=3)]) as server:
        ended = await place.run(*ASK, "--record-wire", env=environment(server))
    assert ended.code == 0
    assert "raw bytes of this reply hold a secret" in ended.err
    (reply,) = replies(sessions(place)[0])
    assert reply.wire == ""


async def test_a_session_that_goes_on_records_from_then_on(place: Workplace):
    async with StrictServer([says("one"), says("two"), says("three")]) as server:
        env = environment(server)
        await place.run(*ASK, env=env)
        await place.run(*ASK, "--continue", "--record-wire", env=env)
        await place.run(*ASK, "--continue", env=env)
    assert [bool(reply.wire) for reply in replies(sessions(place)[0])] == [False, True, False]
    assert (await place.run("replay", "latest")).code == 0


async def test_verify_sees_a_changed_byte(place: Workplace):
    async with StrictServer([says("one")]) as server:
        await place.run(*ASK, "--record-wire", env=environment(server))
    (path,) = sessions(place)
    (reply,) = replies(path)
    blob = path.with_suffix(".blobs") / reply.wire
    data = blob.read_bytes()
    blob.chmod(0o600)
    blob.write_bytes(b"?" + data[1:])
    ended = await place.run("sessions", "verify", "latest")
    assert ended.code == 1
    assert reply.wire in ended.out + ended.err
    ended = await place.run("replay", "latest")
    assert ended.code == 1
    assert "damaged" in ended.err
    blob.write_bytes(data)
    assert (await place.run("sessions", "verify", "latest")).code == 0


@pytest.mark.parametrize("model", ["offline", "script"])
async def test_a_model_without_a_wire_says_so(place: Workplace, model: str):
    name = place.script("done") if model == "script" else model
    ended = await place.run("-p", "help", "--model", name, "--record-wire")
    assert ended.code == 0
    (line,) = (line for line in ended.err.splitlines() if "--record-wire" in line)
    assert line.startswith("warning:")
    assert "nothing to record" in line
    assert [reply.wire for reply in replies(sessions(place)[0])] == [""]


async def test_where_nothing_is_kept_it_is_wrong_use(place: Workplace):
    ended = await place.run(
        "-p", "x", "--model", "offline", "--record-wire", "--no-session-persistence"
    )
    assert (ended.code, ended.out) == (2, "")
    assert "--record-wire" in ended.err
    assert "--no-session-persistence" in ended.err
