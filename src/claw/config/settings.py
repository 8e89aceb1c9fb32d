"""``Settings``: the keys of a settings file, in their JSON names ``camelCase``."""

from typing import Annotated, Any, Literal

import msgspec

from claw.types.hooks import HookEvent
from claw.types.permissions import MODE_ALIASES, PermissionMode

__all__ = [
    "LATER_KEYS",
    "WITHOUT_EFFECT",
    "Compaction",
    "HookCommand",
    "HookGroup",
    "Instructions",
    "Limits",
    "Permissions",
    "Provider",
    "Settings",
    "settings_schema",
]

# Known, for parts of claw that do not exist yet: accepted, and whoever sets one is told
# what this version does instead.
WITHOUT_EFFECT = {
    "editorMode": "has one way of editing a line",
    "hooks.Notification": "fires no such hook",
    "hooks.PermissionRequest": "fires no such hook",
    "hooks.SessionEnd": "fires no such hook",
    "hooks.SessionStart": "fires no such hook",
    "hooks.SubagentStop": "fires no such hook",
    "mcpServers": "has no MCP servers",
    "notifications": "sends no notifications",
    "plugins": "has no plugins",
    "retention": "deletes no session",
    "sandbox": "has no sandbox, and commands run with your own rights",
    "statusLine": "has no status line",
    "telemetry": "sends no telemetry",
    "theme": "has one theme",
}
# Those of them whose values nobody looks at.
LATER_KEYS = (
    "editorMode",
    "mcpServers",
    "notifications",
    "plugins",
    "retention",
    "sandbox",
    "statusLine",
    "telemetry",
)

Count = Annotated[int, msgspec.Meta(ge=1)]
Positive = Annotated[float, msgspec.Meta(gt=0)]


class _Section(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    pass


class Provider(_Section, frozen=True):
    """A model server. ``api_key_env`` names the variable that holds the key.

    ``tools``: ``json_schema`` for models that know no calls.
    """

    dialect: str = ""
    base_url: str = ""
    api_key_env: str = ""
    headers: dict[str, str] = {}
    context_window: Count | None = None
    max_output: Count | None = None
    quirks: dict[str, Any] = {}
    tools: Literal["native", "json_schema"] = "native"


class Permissions(_Section, frozen=True):
    """Rules are ``Tool`` or ``Tool(content)``; deny > ask > allow, whichever file they are in."""

    default_mode: PermissionMode | None = None
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    additional_directories: tuple[str, ...] = ()


class HookCommand(_Section, frozen=True):
    """``timeout`` in seconds, else 60. ``on_failure``: ``warn``, in managed settings ``block``."""

    command: Annotated[str, msgspec.Meta(min_length=1)]
    type: Literal["command"] = "command"
    timeout: Positive | None = None
    on_failure: Literal["warn", "block"] | None = None


class HookGroup(_Section, frozen=True):
    """``matcher``: tool names with ``|`` between them, a regular expression, or all if empty."""

    hooks: tuple[HookCommand, ...]
    matcher: str = ""


class Limits(_Section, frozen=True):
    """Of one turn. ``max_turns`` counts steps, ``max_time`` is in seconds."""

    max_turns: Count | None = None
    max_budget_usd: Positive | None = None
    max_budget_tokens: Count | None = None
    max_time: Positive | None = None


class Instructions(_Section, frozen=True):
    """``max_bytes`` bounds what all instruction files together add to the prompt."""

    max_bytes: Count | None = None


class Compaction(_Section, frozen=True):
    """``threshold`` in tokens; up to 100, per cent of the model's window without the room
    for the answer; up to 1, a share of it. ``model`` writes the summaries.
    """

    auto: bool = True
    threshold: Positive | None = None
    model: str | None = None


class Settings(_Section, frozen=True):
    """All layers merged."""

    model: str | None = None
    fallback_model: str | None = None
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    max_output_tokens: Count | None = None
    providers: dict[str, Provider] = {}
    permissions: Permissions = Permissions()
    hooks: dict[HookEvent, tuple[HookGroup, ...]] = {}
    env: dict[str, str] = {}
    compaction: Compaction = Compaction()
    limits: Limits = Limits()
    instructions: Instructions = Instructions()
    theme: str | None = None


def settings_schema() -> dict[str, Any]:
    """JSON Schema of a settings file."""
    schema = msgspec.json.schema(Settings, ref_template="#/$defs/{name}")
    settings = schema["$defs"]["Settings"]
    settings["properties"]["$schema"] = {"type": "string"}
    for key in LATER_KEYS:
        settings["properties"][key] = {"description": "accepted, without effect yet"}
    modes = schema["$defs"]["Permissions"]["properties"]["defaultMode"]["anyOf"]
    for choice in modes:
        if "enum" in choice:
            choice["enum"] = [*choice["enum"], *MODE_ALIASES]
    for name in schema["$defs"]:
        schema["$defs"][name]["additionalProperties"] = False
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
