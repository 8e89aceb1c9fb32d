from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from claw.config.lines import Path, dotted, find_lines

TEXT = """\
{
  "model": "x", "a\\"b": 1,

  "permissions": {
    "deny": ["Bash(rm:*)",
      "Read(./{x},[y])"
    ]
  },
  "hooks": {"Stop": [
    {"hooks": [{"command": "ls"}]},
    {"hooks": []}
  ]},
  "model": "y"
}
"""


def test_every_key_and_element_has_its_line() -> None:
    lines = find_lines(TEXT)
    expected: dict[Path, int] = {
        ('a"b',): 2,
        ("permissions",): 4,
        ("permissions", "deny"): 5,
        ("permissions", "deny", 0): 5,
        ("permissions", "deny", 1): 6,
        ("hooks", "Stop", 0, "hooks", 0, "command"): 10,
        ("hooks", "Stop", 1): 11,
        ("model",): 13,
    }
    assert {path: lines.of(path) for path in expected} == expected
    assert lines.repeated == (("model",),)
    assert lines.of(("permissions", "deny", 7)) == 5
    assert lines.of(("nowhere",)) == 0


def test_dotted() -> None:
    assert dotted(("hooks", "Stop", 0, "hooks", 1, "command")) == "hooks.Stop[0].hooks[1].command"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


def paths(value: Any, at: Path = ()) -> set[Path]:
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    return {at} - {()} | {p for key, item in items for p in paths(item, (*at, key))}


@given(values, st.sampled_from([None, 2]))
def test_no_place_is_missed_or_made_up(value: Any, indent: int | None) -> None:
    assert set(find_lines(json.dumps(value, indent=indent)).by_path) == paths(value)
