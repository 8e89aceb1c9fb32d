"""Two texts side by side: each is told whole, and what differs is marked."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from claw.viewer.differing import LONGEST, Differ
from tests.unit.viewer.test_markup import Reader

TEXTS = st.text(alphabet="ab \n<&", max_size=60)


def sides(old: str | None, new: str | None) -> str:
    return Differ(str).sides(old, new)


def marked(source: str, name: str) -> list[str]:
    return re.findall(f"<{name}>(.*?)</{name}>", source, re.DOTALL)


def column(source: str, side: int) -> str:
    """The text of one side, without its signs."""
    lines = []
    for pair in re.findall(r'<div class="pair[^"]*">(.*?)</div>', source, re.DOTALL):
        cells = re.findall(r"<pre>(.*?)</pre>|<p[^>]*>.*?</p>", pair, re.DOTALL)
        lines.append(re.sub(r'<span class="sign">.</span>', "", cells[side]))
    return Reader("".join(lines)).text


@given(TEXTS, TEXTS)
def test_both_texts_are_there_whole(old: str, new: str) -> None:
    found = sides(old, new)
    if "lines are the same" not in found:
        assert column(found, 0) == old + "\n"
        assert column(found, 1) == new + "\n"


@given(TEXTS, TEXTS)
def test_without_what_is_marked_both_are_the_same(old: str, new: str) -> None:
    found = sides(old, new)
    assert bool(marked(found, "del") or marked(found, "ins") or '"sign">-' in found
                or '"sign">+' in found) == (old != new)  # fmt: skip


def test_words_are_marked_in_a_line() -> None:
    found = sides("the lock is old", "the lock is new")
    assert (marked(found, "del"), marked(found, "ins")) == (["old"], ["new"])


def test_lines_that_have_nothing_in_common_are_marked_whole() -> None:
    found = sides("allow it", "never")
    assert (marked(found, "del"), marked(found, "ins")) == (["allow it"], ["never"])


def test_marks_are_signs_besides_their_colour() -> None:
    found = sides("a\nb\nc", "a\nx\nc")
    assert found.count('<span class="sign">-</span>') == 1
    assert found.count('<span class="sign">+</span>') == 1


def test_equal_lines_are_left_out_but_for_those_nearby() -> None:
    lines = [f"line {n}" for n in range(40)]
    found = sides("\n".join(lines), "\n".join([*lines[:20], "new", *lines[20:]]))
    assert marked(found, "ins") == ["new"]
    assert "⋯ 17 lines are the same" in found
    assert "line 17" in found
    assert "line 16" not in found


def test_what_stands_on_one_side_only() -> None:
    assert ">nothing<" in sides(None, "x")
    assert column(sides("a\nb", None).replace("nothing", ""), 0) == "a\nb\n"


def test_a_long_line_is_shown_where_it_differs() -> None:
    found = sides("x" * 5_000_000 + "old" + "y" * 100_000, "x" * 5_000_000 + "new")
    assert len(found) < 3 * LONGEST
    assert "characters before are the same" in found
    assert "more characters" in found
    assert "old" in found
    assert "new" in found


def test_many_lines_are_shown_where_they_differ() -> None:
    begin = "\n".join(f"{n}" for n in range(4_000))
    found = sides(f"{begin}\nold\n{begin}", f"{begin}\nnew\n{begin}")
    assert (marked(found, "del"), marked(found, "ins")) == (["old"], ["new"])
    assert found.count('class="line') < 1_400
    assert "characters before are the same" in found
    assert "more characters" in found


def test_past_its_work_a_page_marks_all_from_where_it_differs() -> None:
    differ = Differ(str)
    old, new = ("\n".join(f"{n * by % 500}" for n in range(500)) for by in (3, 7))
    marks = [len(marked(differ.sides(old, new), "del")) for _ in range(30)]
    assert marks[0] < marks[-1]
    assert marks[-1] == marks[-2]


def test_a_page_has_room_for_so_much() -> None:
    differ = Differ(str)
    sizes = [len(differ.sides("a" * 30_000, "b" * 30_000)) for _ in range(80)]
    assert sizes[0] > LONGEST
    assert sizes[-1] < 6_000


def test_secrets_are_taken_out_before_anything_is_cut() -> None:
    differ = Differ(lambda text: text.replace("swordfish", "[redacted]"))
    found = differ.sides("a" * 30_000 + "swordfish", "a" * 30_000 + "swordtail")
    assert "swordfish" not in found
    assert "[redacted]" in Reader(found).text
    assert "swordfish" not in differ.sides("swordfish", None)
