from claw.recordings.trajectory import diff, dumps, trajectory
from claw.types.entries import (
    Digests,
    Entry,
    SessionStarted,
    StepRequested,
    ToolFinished,
    TurnEnded,
    UnknownEntry,
)
from claw.types.messages import Text
from claw.types.usage import Usage


def entries(cwd: str, ms: int, usage: Usage) -> list[Entry]:
    digests = Digests("s", "t", f"m{ms}", "p")
    return [
        SessionStarted("id", "0.1", cwd, f"at {ms}", schema=1),
        UnknownEntry("later", b"{}"),
        StepRequested(1, "m", 1, digests),
        ToolFinished("c", (Text(f"{cwd}/file and {cwd}/sub/file"),), "ok", ms=ms),
        TurnEnded(1, "completed", 1, usage, ms=ms),
    ]


def test_what_differs_between_machines_and_runs_is_left_out() -> None:
    here = trajectory(entries("/a/b", 1, Usage(9, 9, estimated=True)), {"/a/b": "${CWD}"})
    there = trajectory(entries("/x/y z", 77, Usage(5, 9, estimated=True)), {"/x/y z": "${CWD}"})
    assert here == there
    assert "${CWD}/file and ${CWD}/sub/file" in dumps(here)


def test_real_usage_counts() -> None:
    one = trajectory(entries("/a", 1, Usage(1, 1)), {})
    two = trajectory(entries("/a", 1, Usage(1, 2)), {})
    assert one != two
    assert '-    "output_tokens": 1' in diff(dumps(one), dumps(two))


def test_longer_names_are_replaced_first() -> None:
    record = trajectory(
        entries("/home/me/work", 1, Usage()), {"/home/me": "~", "/home/me/work": "."}
    )
    assert record["entries"][0]["cwd"] == "."
