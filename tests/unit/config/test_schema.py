from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from claw.config.settings import settings_schema

GOOD: list[dict[str, Any]] = [
    {},
    {"$schema": "x", "sandbox": {"mode": "off"}},
    {"model": "x", "permissions": {"defaultMode": "workspace-write", "deny": ["Bash"]}},
    {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": 1.5}]}]}},
    {"limits": {"maxTurns": 1}, "compaction": {"auto": False, "threshold": 0.5}},
]
BAD: list[dict[str, Any]] = [
    {"modle": "x"},
    {"permissions": {"defaultMode": "plam"}},
    {"hooks": {"Stop": [{"hooks": [{"type": "prompt", "command": "x"}]}]}},
    {"limits": {"maxTurns": 0}},
]


@pytest.mark.parametrize("value", GOOD)
def test_good_settings_fit(value: dict[str, Any]) -> None:
    jsonschema.validate(value, settings_schema())


@pytest.mark.parametrize("value", BAD)
def test_others_do_not(value: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, settings_schema())


def test_it_is_the_same_every_time() -> None:
    assert json.dumps(settings_schema()) == json.dumps(settings_schema())
