"""Where configuration and state live."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal

import msgspec

from claw.errors import ConfigError

__all__ = [
    "MANAGED",
    "Homes",
    "Layer",
    "SettingsFile",
    "find_homes",
    "make_private",
    "managed_objection",
    "project_root",
    "settings_files",
]

MANAGED = "/etc/claw/settings.json"

Layer = Literal["managed", "flags", "environment", "project-local", "project", "user"]


class Homes(msgspec.Struct, frozen=True):
    """``config`` is the user's own directory, ``project`` the root of the project. Absolute."""

    config: str
    project: str

    @property
    def sessions(self) -> str:
        return os.path.join(self.config, "sessions")

    @property
    def history(self) -> str:
        return os.path.join(self.config, "history")

    @property
    def logs(self) -> str:
        return os.path.join(self.config, "logs")

    @property
    def settings(self) -> str:
        return os.path.join(self.config, "settings.json")


class SettingsFile(msgspec.Struct, frozen=True):
    layer: Layer
    path: str


def find_homes(cwd: str, env: Mapping[str, str]) -> Homes:
    """``CLAW_CONFIG_HOME``, or ``.claw`` in the home directory; nothing is created."""
    home = env.get("HOME") or os.path.expanduser("~")
    config = env.get("CLAW_CONFIG_HOME") or os.path.join(home, ".claw")
    if config.startswith("~/"):
        config = os.path.join(home, config[2:])
    return Homes(os.path.join(os.path.abspath(cwd), config), project_root(cwd))


def project_root(cwd: str) -> str:
    """The directory at or above ``cwd`` that holds ``.git``, else ``cwd``. No program is run."""
    start = at = os.path.abspath(cwd)
    while not os.path.lexists(os.path.join(at, ".git")):
        above = os.path.dirname(at)
        if above == at:
            return start
        at = above
    return at


def settings_files(homes: Homes, managed: str = MANAGED) -> list[SettingsFile]:
    """The files that may exist, weakest first. The user's own file is never a project's too."""
    files = [SettingsFile("user", homes.settings)]
    places: tuple[tuple[Layer, str], ...] = (
        ("project", "settings.json"),
        ("project-local", "settings.local.json"),
    )
    for layer, name in places:
        for folder in (".claude", ".claw"):
            path = os.path.join(homes.project, folder, name)
            if path != homes.settings:
                files.append(SettingsFile(layer, path))
    return [*files, SettingsFile("managed", managed)]


def managed_objection(path: str) -> str:
    """Why a managed file that exists does not count; blank if it does.

    It and its directory must belong to root and be writable by root alone.
    """
    for place in (path, os.path.dirname(path)):
        status = os.stat(place)
        if status.st_uid != 0:
            return f"{place} does not belong to root"
        if status.st_mode & 0o022:
            return f"{place} can be written by others than root"
    return ""


def make_private(path: str) -> str:
    """Make a directory, and those above it, 0700 each; what exists stays as it is.

    Returns the path. Raises ``ConfigError``.
    """
    missing, at = [], path
    while not os.path.isdir(at):
        missing.append(at)
        above = os.path.dirname(at)
        if above == at:
            break
        at = above
    for place in reversed(missing):
        try:
            os.mkdir(place, 0o700)
        except FileExistsError:
            if os.path.isdir(place):  # another process was first
                continue
            raise ConfigError(
                f"{place} is not a directory", hint="Move it away, or set CLAW_CONFIG_HOME."
            ) from None
        except OSError as error:
            raise ConfigError(
                f"cannot make {place}: {error.strerror}",
                hint="Set CLAW_CONFIG_HOME to a directory that you can write to.",
            ) from error
    return path
