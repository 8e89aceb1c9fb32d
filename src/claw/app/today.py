"""What settings and files come to now: for a replay that judges by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from claw.app.configured import existing_directory, hooks_of, policy_of, secrets_of, settings_of
from claw.app.prompting import instructions_of, kept, with_scripts
from claw.app.wishes import Wishes
from claw.config.paths import home_directory
from claw.policy.hooks.declared import HookDeclaration
from claw.policy.permissions import ModePolicy
from claw.policy.redact import KnownSecrets
from claw.ports import (
    Redactor,
)
from claw.prompts.system import instructions_section
from claw.types.permissions import Rule
from claw.types.tools import ToolSpec

__all__ = ["Today", "today"]


class Today(msgspec.Struct, frozen=True):
    """What the settings and files of a directory come to now.

    ``instructions`` is the section of the system prompt; ``kept_rules`` and ``kept_hooks``
    are as a session's record has them.
    """

    policy: ModePolicy
    hooks: tuple[HookDeclaration, ...]
    instructions: str
    kept_rules: list[Rule]
    kept_hooks: bytes
    env: Mapping[str, str]
    homes: tuple[str, str]
    redactor: Redactor


def today(wishes: Wishes, specs: Sequence[ToolSpec]) -> Today:
    """Read them anew. Raises ``ConfigError``."""
    cwd = existing_directory(wishes.cwd)
    loaded = settings_of(wishes, cwd)
    policy, _ = policy_of(loaded, specs)
    hooks, _ = hooks_of(loaded)
    redactor = KnownSecrets(secrets_of(loaded, wishes.env))
    return Today(
        policy=policy,
        hooks=hooks,
        instructions=redactor.clean(
            instructions_section(instructions_of(loaded, cwd).instructions)
        ),
        kept_rules=msgspec.json.decode(kept(policy.rules, redactor), type=list[Rule]),
        kept_hooks=kept(with_scripts(hooks, cwd, home_directory(wishes.env)), redactor),
        env=loaded.settings.env,
        homes=(loaded.homes.config, loaded.homes.project),
        redactor=redactor,
    )
