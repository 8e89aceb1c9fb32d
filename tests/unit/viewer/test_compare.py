"""The page of a replay: both sides, what differs, and nothing that is not safe."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from claw.engine.replaying import Live, replay_session
from claw.recordings.align import pairs
from claw.recordings.verify import Played, Replayed
from claw.testing import Harness, says
from claw.types.entries import KnownEntry, ToolFinished
from claw.types.messages import Text
from claw.viewer.compare import Verdict, comparison
from tests.comparing import (
    another_result,
    attacked,
    judged,
    new_instructions,
    new_notes,
    new_rule,
    nothing,
    page,
    page_of_many,
)
from tests.replay.recordings import shortened
from tests.unit.replay.test_align import FINISHED, TURN
from tests.unit.viewer.test_markup import Reader
from tests.unit.viewer.test_page import Document

Page = Callable[[str], str]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """Pages by name, each made once."""
    folder = tmp_path_factory.mktemp("replays")
    found: dict[str, str] = {}
    ways = {
        "rule": lambda to: judged(to, "policy", change=new_rule),
        "stopped": lambda to: judged(to, "policy", change=new_rule, goes_on=False),
        "prompt": lambda to: judged(to, "prompt", change=new_instructions, goes_on=False),
        "tools": lambda to: judged(to, "tools", change=new_notes),
        "same": lambda to: judged(to, change=nothing),
        "stale": lambda to: judged(to, change=new_rule),
        "spoiled": another_result,
        "hostile": attacked,
    }

    def make(name: str) -> str:
        if name not in found:
            found[name] = page(*asyncio.run(ways[name](folder / name)))
        return found[name]

    return make


def text_of_page(source: str) -> str:
    return " ".join(
        Reader(
            re.sub("<script>.*?</script>|<style>.*?</style>", "", source, flags=re.S)
        ).text.split()
    )


def of(made: list[KnownEntry] | None, **verdict: object) -> str:
    """The page of one turn."""
    turn = Played((), tuple(TURN), None if made is None else tuple(made))
    return comparison(
        pairs(Replayed("s", 1, 1, played=(turn,))),
        Verdict(1, 1, **verdict),  # type: ignore[arg-type]
        clean=str,
        blob=lambda digest: None,
        price=lambda usage, model: None,
    )


NAMES = ["rule", "stopped", "prompt", "tools", "same", "stale", "spoiled", "hostile"]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_closed_and_sound(made: Page, name: str) -> None:
    document = Document(made(name))
    assert len(document.scripts) == 1
    (policy,) = [a["content"] for t, a in document.elements if a.get("http-equiv")]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:;")
    tags = {tag for tag, _ in document.elements}
    assert not tags & {"iframe", "object", "embed", "base", "link", "audio", "video", "img"}
    for tag, attributes in document.elements:
        assert not [each for each in attributes if each.startswith("on") or each == "style"], tag
    ids = document.all("id")
    assert len(ids) == len(set(ids))
    assert {href[1:] for href in document.all("href") if href.startswith("#")} <= set(ids)
    assert made(name).count("<details") == made(name).count("</details>")


def test_the_first_difference_is_named_and_led_to(made: Page) -> None:
    source = made("rule")
    text = text_of_page(source)
    assert "Differs from the recording" in text
    assert "First at turn 2, step 1: decision_made.decision: allow → deny" in text
    assert 'href="#difference-1"' in source
    assert 'id="difference-1"' in source
    assert "as of today policy" in text.replace("as of today", "as of today ").replace("  ", " ")


def test_the_fields_that_differ_are_told_with_both_values(made: Page) -> None:
    source = made("rule")
    fields = re.findall(r"<h4><code>([^<]+)</code>", source)
    assert fields[:3] == [
        "decision_made.decision",
        "decision_made.judged",
        "decision_made.reason",
    ]
    assert "tool_intended" in fields  # on one side only
    assert "<del>allow</del>" in source
    assert "<ins>deny</ins>" in source


def test_what_follows_from_a_difference_is_no_new_one(made: Page) -> None:
    assert made("spoiled").count('class="row differs') == 1
    text = text_of_page(made("spoiled"))
    assert "digests.messages The conversation that was sent is another one" in text
    assert "only follow" in text
    assert made("rule").count('class="row differs') == 1


def test_a_result_of_today_stands_beside_the_recorded_one(made: Page) -> None:
    source = made("tools")
    assert "<del>old</del>" in source
    assert "<ins>new</ins>" in source
    assert "tool_finished.content[0].text" in source


def test_the_system_prompt_is_shown_as_a_diff(made: Page) -> None:
    source = made("prompt")
    assert "prompt_installed.system" in source
    assert "<del>brief</del>" in source
    assert "<ins>thorough</ins>" in source
    assert "lines are the same" in source


def test_what_is_the_same_is_folded_away(made: Page) -> None:
    source = made("same")
    text = text_of_page(source)
    assert "The same as the recording" in text
    assert "Turns 1 to 2 same, 44 entries" in text
    assert 'class="row differs' not in source
    assert 'class="run same"' in source
    assert "<nav" not in source


def test_stale_parts_are_told(made: Page) -> None:
    assert "Stale: policy changed since" in text_of_page(made("stale"))
    assert "Stale" not in text_of_page(made("same"))


def test_what_comes_after_a_stop_is_not_replayed(made: Page) -> None:
    text = text_of_page(made("stopped"))
    assert "The replay stopped there" in text
    assert "Steps 2 to 3 not replayed" in text
    assert "1 of 1" in text
    assert "Turns 1 to 2 not replayed" not in text
    assert "Turn 2 not replayed" in text_of_page(made("prompt"))
    assert "The replay stopped there" not in text_of_page(made("rule"))


def test_what_is_on_one_side_only_leaves_the_other_empty() -> None:
    source = of([each for each in TURN if each is not TURN[1]])
    assert "nothing was replayed here" in source
    assert "≠ only recorded" in source
    more = [*TURN[:2], TURN[1], *TURN[2:]]
    assert "nothing was recorded here" in of(more)


def test_a_recording_that_ends_early_says_so(tmp_path: Path) -> None:
    path, _ = asyncio.run(judged(tmp_path, change=nothing))
    shortened(Path(path), 12)
    source = page(path, asyncio.run(replay_session(path, Live())))
    assert "ends in the middle of a turn" in text_of_page(source)
    assert "The same as the recording" in text_of_page(source)


def test_hostile_texts_are_text(made: Page) -> None:
    source = made("hostile")
    assert "window.owned" in source
    assert source.count("<script>") == 1
    assert "\u202e" not in source
    assert "\x1b" not in source
    assert "U+202E" in source
    assert "javascript:" not in "".join(Document(source).all("href"))


def test_secrets_are_taken_out_everywhere(tmp_path: Path) -> None:
    path, report = asyncio.run(judged(tmp_path, "tools", change=new_notes))

    def clean(text: str) -> str:
        return text.replace("lock is", "[redacted]")

    source = page(path, report, clean)
    assert "[redacted]" in source
    assert "lock is" not in source


def test_endless_texts_have_a_bound() -> None:
    old, new = "x" * 5_000_000, "x" * 4_999_999 + "y\ud800\0"
    turn = [replace(each, content=(Text(new),)) if each is FINISHED else each for each in TURN]
    long = Played(
        (),
        tuple(replace(e, content=(Text(old),)) if e is FINISHED else e for e in TURN),
        tuple(turn),
    )
    source = comparison(
        pairs(Replayed("s", 1, 1, played=(long,))),
        Verdict(1, 1),
        clean=str,
        blob=lambda digest: None,
        price=lambda usage, model: None,
    )
    assert len(source.encode()) < 400_000
    assert "characters before are the same" in source
    assert "U+D800" in source


def test_many_fields_are_counted() -> None:
    texts = tuple(Text(f"{n}") for n in range(40))
    turn = [replace(e, content=texts) if isinstance(e, ToolFinished) else e for e in TURN]
    text = text_of_page(of(turn))
    assert text.count("tool_finished.content[") == 12 + 1  # the list of differences names one
    assert "more fields differ" in text


def test_many_steps_share_columns() -> None:
    source = page_of_many(6_000)
    columns = re.findall(r'<li class="[^"]*"><a href="#turn-\d+-step-\d+"', source)
    assert 200 < len(columns) <= 400
    assert source.count('<li class="differs') > 5


def test_the_same_replay_gives_the_same_bytes(tmp_path: Path) -> None:
    path, report = asyncio.run(judged(tmp_path, "policy", change=new_rule))
    assert page(path, report) == page(path, report)


def test_what_stands_outside_of_turns_is_told(tmp_path: Path) -> None:
    """New titles, rewinds, turns that call themselves by the same number."""

    async def run() -> tuple[str, Replayed]:
        async with Harness(tmp_path, [says(f"{n}") for n in range(3)]) as run:
            await run.turn("one")
            await run.turn("two")
            run.house.runtime.rewind(run.house.runtime.turns()[-1].seq)
            await run.turn("three")
            run.house.runtime.rename("Afterwards")
            path = str(run.house.journal_path)
        return path, await replay_session(path)

    path, report = asyncio.run(run())
    text = text_of_page(page(path, report))
    assert "went back to before turn 2" in text
    assert "Replay of Afterwards" in text
    assert "After the last turn" in text


def test_a_session_without_turns_is_the_same() -> None:
    source = comparison(
        pairs(Replayed("s", 0, 0)),
        Verdict(0, 0),
        clean=str,
        blob=lambda digest: None,
        price=lambda usage, model: None,
    )
    assert "The same as the recording" in source
