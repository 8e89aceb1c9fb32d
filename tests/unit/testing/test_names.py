from __future__ import annotations

import subprocess
import sys

import pytest

import claw.testing


def test_every_name_is_there_and_the_list_is_sorted():
    assert claw.testing.__all__ == sorted(claw.testing.__all__)
    for name in claw.testing.__all__:
        assert getattr(claw.testing, name) is not None
    assert dir(claw.testing) == claw.testing.__all__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="NoSuchThing"):
        _ = claw.testing.NoSuchThing


def test_names_load_lazily_and_without_test_frameworks():
    script = (
        "import sys, claw.testing as t; lazy = 'claw.testing.strict_server' not in sys.modules\n"
        "for name in t.__all__: getattr(t, name)\n"
        "print(lazy, [m for m in ('pytest', 'hypothesis', 'yaml', 'unittest', 'httpx2') "
        "if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "True []"
