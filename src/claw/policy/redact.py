"""``KnownSecrets``: text without the secrets that claw knows or recognises.

Known are the values of variables whose names speak of a secret; recognised are keys
in the published shapes of their issuers and PEM blocks of private keys
(https://www.rfc-editor.org/rfc/rfc7468). Each becomes ``[redacted:NAME]``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["KnownSecrets", "known_secrets"]

SHORTEST = 8  # shorter values would redact ordinary words

# fmt: off
SECRET_WORDS = frozenset({
    "ACCESSKEY", "APIKEY", "AUTHTOKEN", "CREDENTIAL", "CREDENTIALS", "KEY", "PASSPHRASE", "PASSWD",
    "PASSWORD", "PAT", "PRIVATEKEY", "PWD", "SECRET", "SECRETS", "TOKEN",
})
# fmt: on
NOT_SECRET = frozenset({"PWD", "OLDPWD", "INIT_CWD"})
PLACES = ("_FILE", "_PATH", "_DIR", "_ID", "_URL")  # where a secret is, not what it is

# Name, the literals one of which every match begins with (so that a plain search rules most
# texts out), and the pattern. The look behind keeps `disk-...` from being taken for `sk-...`.
SHAPES = (
    ("anthropic-key", ("sk-ant-",), r"sk-ant-(?<![A-Za-z0-9]sk-ant-)[A-Za-z0-9_-]{16,}"),
    ("openai-key", ("sk-",), r"sk-(?<![A-Za-z0-9]sk-)[A-Za-z0-9_-]{20,}"),
    (
        "github-token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        r"gh[pousr]_(?<![A-Za-z0-9]gh._)[A-Za-z0-9]{20,}",
    ),
    ("github-token", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{20,}"),
    ("gitlab-token", ("glpat-",), r"glpat-[A-Za-z0-9_-]{20,}"),
    ("aws-access-key", ("AKIA",), r"AKIA(?<![A-Za-z0-9]AKIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("aws-access-key", ("ASIA",), r"ASIA(?<![A-Za-z0-9]ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("slack-token", ("xox",), r"xox[abeoprs]-(?<![A-Za-z0-9]xox.-)[A-Za-z0-9-]{10,}"),
    ("google-key", ("AIza",), r"AIza(?<![A-Za-z0-9]AIza)[A-Za-z0-9_-]{35}"),
    ("huggingface-token", ("hf_",), r"hf_(?<![A-Za-z0-9]hf_)[A-Za-z0-9]{30,}"),
    ("groq-key", ("gsk_",), r"gsk_(?<![A-Za-z0-9]gsk_)[A-Za-z0-9]{30,}"),
    ("xai-key", ("xai-",), r"xai-(?<![A-Za-z0-9]xai-)[A-Za-z0-9]{30,}"),
    (
        "private-key",
        ("-----BEGIN ",),
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[\s\S]{0,16384}?-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"|(?:\s*[A-Za-z0-9+/=]{40,})+)",
    ),
)
MARK = "[redacted:"
PASSES = 8


def known_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that hold secrets, judged by their names: value by name."""
    return {
        name: value.strip()
        for name, value in environment.items()
        if len(value.strip()) >= SHORTEST and MARK not in value and _speaks_of_secret(name)
    }


def _speaks_of_secret(name: str) -> bool:
    upper = name.upper()
    if upper in NOT_SECRET or upper.endswith(PLACES):
        return False
    return not SECRET_WORDS.isdisjoint(re.split(r"[^A-Z0-9]+", upper)) or upper.endswith(
        ("APIKEY", "TOKEN", "SECRET", "PASSWORD")
    )


class KnownSecrets:
    """Implements ``Redactor``. ``secrets``: value by name, as ``known_secrets`` gives them."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        names: dict[str, str] = {}
        for name in sorted(secrets):
            names.setdefault(secrets[name], name)
        self._names = names
        # The longest first: a secret that contains another one goes as a whole.
        ordered = sorted(names, key=lambda value: (-len(value), value))
        # A mark stays as it is, whatever a secret's value may be.
        self._values = "|".join((r"\[redacted:[^\[\]\s]+\]", *map(re.escape, ordered)))

    def clean(self, text: str) -> str:
        # Taking one secret out may lay the edge of the next one bare.
        for _ in range(PASSES):
            cleaned = self._pass(text)
            if cleaned == text:
                break
            text = cleaned
        return text

    def _pass(self, text: str) -> str:
        if any(value in text for value in self._names):
            text = re.sub(self._values, self._mark, text)
        for name, literals, pattern in SHAPES:
            if any(literal in text for literal in literals):
                text = re.sub(pattern, f"{MARK}{name}]", text)
        return text

    def _mark(self, match: re.Match[str]) -> str:
        name = self._names.get(match[0])
        return match[0] if name is None else f"{MARK}{name}]"
