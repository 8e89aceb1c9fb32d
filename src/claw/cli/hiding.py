"""What the settings say, without the secrets in it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from claw.config.load import Loaded
from claw.policy.redact import KnownSecrets, known_secrets

__all__ = ["hide_in_setting", "hide_login", "hider"]

_LOGIN = re.compile(r"(?<=://)[^/@\s\"']+@")


def hider(loaded: Loaded) -> Callable[[str], str]:
    """Takes out of a text what the environment and the settings keep secret."""
    secrets = KnownSecrets(known_secrets({**os.environ, **loaded.settings.env}))
    return lambda text: secrets.clean(hide_login(text))


def hide_login(text: str) -> str:
    """Without user names and passwords in addresses."""
    return _LOGIN.sub("[redacted:login]@", text)


def hide_in_setting(key: str, value: Any, hide: Callable[[str], str]) -> Any:
    """A value by its dotted key. Any header may be a secret; variables tell by their names."""
    if key.startswith("providers.") and ".headers." in key:
        return "[redacted:header]"
    name = key.removeprefix("env.")
    if name != key and known_secrets({name: "long enough"}):
        return f"[redacted:{name}]"
    return _in_all_texts(value, hide)


def _in_all_texts(value: Any, hide: Callable[[str], str]) -> Any:
    match value:
        case str():
            return hide(value)
        case dict():
            return {key: _in_all_texts(item, hide) for key, item in value.items()}
        case list() | tuple():
            return [_in_all_texts(item, hide) for item in value]
        case _:
            return value
