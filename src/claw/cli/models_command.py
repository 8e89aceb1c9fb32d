"""`claw models`: what `--model` can name, and what answers on this machine."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from claw.app.connecting import profiles
from claw.cli.config_command import load_as_given
from claw.cli.render.envelope import dumps
from claw.cli.screen import Screen
from claw.cli.style import Paint
from claw.cli.terminal import Terminal
from claw.models.address import parse_address
from claw.models.catalog import ALIASES
from claw.models.discovery import USUAL_PORTS, LocalServer, find_local_servers
from claw.models.registry import PROVIDERS, Profile, connection
from claw.policy.display import visible

__all__ = ["HOW_TO_USE_ONE", "described", "show_models"]

HOW_TO_USE_ONE = "To use one: `--model NAME/MODEL` with the name before its address."
LOCAL = frozenset(name for name, _ in USUAL_PORTS)
MOST_NAMES = 5
LONGEST_NAME = 80


class _Server(msgspec.Struct, frozen=True):
    """A provider or profile. ``address`` has no login in it; ``credentials``: whether there are
    any. ``model`` is blank where one must be named, ``address`` where it is not known: then
    a variable of ``place_env`` is to be set."""

    name: str
    dialect: str
    address: str
    model: str
    key_env: tuple[str, ...]
    credentials: bool
    place_env: tuple[str, ...] = ()


def show_models(given: Mapping[str, Any]) -> int:
    """Print them; 0, whatever is there. Raises ``ConfigError``."""
    configured = profiles(load_as_given(given))
    providers = _providers(os.environ)
    own = [_own(name, profile, os.environ) for name, profile in configured.items()]
    local = asyncio.run(find_local_servers())
    screen = Screen(Terminal.look(os.environ), sys.stdout, sys.stderr)
    if given["output_format"] == "json":
        found = {
            "aliases": ALIASES,
            "providers": providers,
            "profiles": own,
            "local_servers": local,
        }
        screen.product(dumps(msgspec.to_builtins(found)) + "\n")
    else:
        screen.product(_as_text(providers, own, local, Paint(screen.terminal.color_stdout)))
    return screen.exit_code(0)


def described(server: LocalServer) -> str:
    """In a line: the name that reaches it, its address, its first models."""
    names = [name[:LONGEST_NAME] for name in server.models[:MOST_NAMES]]
    more = len(server.models) - len(names)
    listed = ", ".join(names) + (f" and {more} more" if more > 0 else "")
    return f"{server.name} at {server.base_url}: {listed or 'no models'}"


def _providers(env: Mapping[str, str]) -> list[_Server]:
    found = []
    for provider in PROVIDERS:
        if provider.name in LOCAL:
            continue
        base_url, has = connection(provider, env)
        key_env = tuple(name for name in (*provider.key_env, provider.bearer_env) if name)
        place_env = () if base_url else provider.place_env
        found.append(
            _Server(
                provider.name,
                provider.dialect,
                _address(base_url) if base_url else "",
                provider.default_model,
                key_env,
                has,
                place_env,
            )
        )
    return found


def _own(name: str, profile: Profile, env: Mapping[str, str]) -> _Server:
    key_env = (profile.api_key_env,) if profile.api_key_env else ()
    has = any(env.get(variable, "").strip() for variable in key_env)
    return _Server(name, profile.dialect, _address(profile.base_url), name, key_env, has)


def _address(url: str) -> str:
    """Scheme and place only: the rest may hold a login."""
    try:
        address = parse_address(url)
    except ValueError:
        return "no web address"
    return f"{address.scheme}://{address.place}"


def _as_text(
    providers: Sequence[_Server],
    own: Sequence[_Server],
    local: Sequence[LocalServer],
    paint: Paint,
) -> str:
    lines = [paint("Aliases", "bold")]
    width = max(map(len, ALIASES))
    lines += [f"  {alias.ljust(width)}  {model}" for alias, model in ALIASES.items()]
    lines += ["", paint("Providers", "bold") + ": name a model as `PROVIDER/MODEL`"]
    lines += _rows(providers, paint)
    if own:
        lines += ["", paint("Profiles", "bold") + " from your settings"]
        lines += _rows(own, paint)
    lines += ["", paint("Local servers", "bold")]
    lines += [f"  {visible(described(server), multiline=False)}" for server in local]
    lines.append(f"  {HOW_TO_USE_ONE}" if local else "  none found on the usual ports")
    lines += ["", "`offline` is always there: it needs no key and no network."]
    return "\n".join(lines) + "\n"


def _rows(servers: Sequence[_Server], paint: Paint) -> list[str]:
    widths = [
        max(len(cell) for cell in column)
        for column in zip(*((s.name, s.model, s.address) for s in servers), strict=True)
    ]
    rows = []
    for server in servers:
        missing = [
            " or ".join(names)
            for names in (server.place_env, () if server.credentials else server.key_env)
            if names
        ]
        if missing:
            key = paint(f"set {' and '.join(missing)}", "dim")
        elif server.credentials:
            key = paint("credentials found", "green")
        else:
            key = paint("no credentials needed", "dim")
        cells = zip((server.name, server.model or "-", server.address), widths, strict=True)
        shown = (visible(cell, multiline=False).ljust(width) for cell, width in cells)
        rows.append(f"  {'  '.join(shown)}  {key}")
    return rows
