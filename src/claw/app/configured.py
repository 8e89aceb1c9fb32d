"""From settings to limits, rules, hooks, secrets."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from claw.app.wishes import Wishes
from claw.config.load import Loaded, load_settings
from claw.errors import ConfigError
from claw.policy.hooks.declared import HookDeclaration, declare, matcher_problem
from claw.policy.permissions import ModePolicy
from claw.policy.redact import SHORTEST, known_secrets
from claw.policy.rules import parse_rule
from claw.runtime.limits import Limit, MaxCost, MaxSteps, MaxTokens
from claw.runtime.turn import TurnOptions
from claw.types.events import Notice
from claw.types.permissions import MODE_ALIASES, MODES, PermissionMode, Rule
from claw.types.tools import ToolSpec

__all__ = [
    "existing_directory",
    "hooks_of",
    "mode_of",
    "options_of",
    "policy_of",
    "secrets_of",
    "settings_of",
]


def existing_directory(path: str) -> str:
    """The real path. Raises ``ConfigError`` where there is none."""
    real = os.path.realpath(path)
    if not os.path.isdir(real):
        raise ConfigError(f"{path} is not a directory", hint="Name an existing one with `--cwd`.")
    return real


def settings_of(wishes: Wishes, cwd: str) -> Loaded:
    """All layers, with the wishes as flags. Raises ``ConfigError``."""
    flags: dict[str, Any] = {
        "model": wishes.model,
        "fallbackModel": ",".join(wishes.fallback) or None,
        "effort": wishes.effort or None,
        "permissions.defaultMode": wishes.mode,
        "permissions.allow": list(wishes.allow) or None,
        "permissions.deny": list(wishes.deny) or None,
        "permissions.additionalDirectories": list(wishes.add_dirs) or None,
        "limits.maxTurns": wishes.max_steps,
        "limits.maxBudgetTokens": wishes.max_tokens,
        "limits.maxBudgetUsd": wishes.max_usd,
        "limits.maxTime": wishes.max_seconds,
        "compaction.auto": None if wishes.auto_compact is None else wishes.auto_compact > 0,
        "compaction.threshold": wishes.auto_compact or None,
    }
    given = {key: value for key, value in flags.items() if value is not None}
    return load_settings(cwd=cwd, env=wishes.env, flags=given, settings_file=wishes.settings_file)


def mode_of(setting: str | None) -> PermissionMode:
    """The permission mode by its name or an alias, which the settings have checked."""
    named = MODE_ALIASES.get(setting or "default", setting or "default")
    return next(mode for mode in MODES if mode == named)


def options_of(wishes: Wishes, loaded: Loaded) -> TurnOptions:
    """Where limits are listed: one line each."""
    limits = loaded.settings.limits
    listed: list[Limit] = [MaxSteps(limits.max_turns) if limits.max_turns else MaxSteps()]
    if limits.max_budget_tokens:
        listed.append(MaxTokens(limits.max_budget_tokens))
    if limits.max_budget_usd:
        listed.append(MaxCost(limits.max_budget_usd))
    return TurnOptions(
        limits=tuple(listed),
        max_seconds=limits.max_time,
        fail_on_denied=wishes.fail_on_denied,
        origin=wishes.origin,
    )


def policy_of(loaded: Loaded, specs: Sequence[ToolSpec]) -> tuple[ModePolicy, list[Notice]]:
    """Rules of all layers, and notices of those that cannot be read. Raises ``ConfigError``."""
    rules: list[Rule] = []
    problems: list[Notice] = []
    for text in loaded.rules:
        parsed = parse_rule(text.text, text.behavior, text.source, specs)
        if isinstance(parsed, Rule):
            rules.append(parsed)
        elif parsed.behavior == "deny" and text.layer not in ("project", "project-local"):
            # Better no start than one without its fence; but a project cannot prevent one.
            raise ConfigError(str(parsed), hint="Correct the rule, or take it out.")
        else:
            problems.append(Notice("rule", "warning", str(parsed)))
    return ModePolicy(rules), problems


def hooks_of(loaded: Loaded) -> tuple[tuple[HookDeclaration, ...], list[Notice]]:
    """Hooks of all layers, and notices of matchers that can never match."""
    hooks: list[HookDeclaration] = []
    problems: list[Notice] = []
    for hook in loaded.hooks:
        if problem := matcher_problem(hook.matcher):
            problems.append(Notice("hook", "warning", f"{hook.source}: {problem}"))
        hooks.append(
            declare(
                hook.event,
                hook.command,
                matcher=hook.matcher,
                timeout=hook.timeout,
                on_failure=hook.on_failure,
                source=hook.source,
            )
        )
    return tuple(hooks), problems


def secrets_of(loaded: Loaded, env: Mapping[str, str]) -> dict[str, str]:
    """What must not be shown or kept, value by name: of the environment and the settings."""
    found = known_secrets({**env, **loaded.settings.env})
    for name, provider in loaded.settings.providers.items():
        key = env.get(provider.api_key_env, "").strip() if provider.api_key_env else ""
        named = {provider.api_key_env: key} | {
            f"{name}.{k}": v for k, v in provider.headers.items()
        }
        found |= {k: v.strip() for k, v in named.items() if len(v.strip()) >= SHORTEST}
    return found
