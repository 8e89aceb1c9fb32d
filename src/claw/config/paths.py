"""Where configuration and state live."""

from __future__ import annotations

import os
import pwd
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
    "home_directory",
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


def home_directory(env: Mapping[str, str]) -> str:
    """``HOME`` where it is absolute, else what the user database says. Absolute.

    A relative one would put a person's settings and sessions into whatever project is open.
    """
    home = env.get("HOME", "")
    if os.path.isabs(home):
        return home
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a container may run as a user that nobody knows
        return "/"


def find_homes(cwd: str, env: Mapping[str, str]) -> Homes:
    """``CLAW_CONFIG_HOME``, or ``.claw`` in the home directory; nothing is created.

    Raises ``ConfigError`` for a relative ``CLAW_CONFIG_HOME``.
    """
    home = home_directory(env)
    config = env.get("CLAW_CONFIG_HOME") or os.path.join(home, ".claw")
    if config == "~" or config.startswith("~/"):
        config = home + config[1:]
    if not os.path.isabs(config):
        raise ConfigError(
            f"CLAW_CONFIG_HOME is a relative path: {config}",
            hint="Give an absolute one, or one that begins with `~/`.",
        )
    return Homes(config, project_root(cwd))


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
        try:
            status = os.stat(place)
        except OSError:  # whoever reads it will say so
            continue
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
