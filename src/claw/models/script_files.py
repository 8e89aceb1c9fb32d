"""Scripts in files: what a scripted model answers, and what a recording holds.

A script is written by hand: a list of replies. A recording is made by
``claw.testing.Recording``: an object with that list in ``replies``, in which each reply
also says what was asked. Both are read here, by the same rules.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from claw.errors import (
    AuthenticationFailed,
    ConfigError,
    ContextOverflow,
    ModelError,
    ModelUnavailable,
    OutputLimitTooHigh,
    ParameterRefused,
    ProtocolViolation,
    RequestRejected,
)
from claw.models.scripted import Cut, Fails, PlainReply, ScriptReply, calls, says
from claw.types.messages import AssistantBlock, Message, ToolUse
from claw.types.places import with_places
from claw.types.reply import Reply
from claw.types.texts import each_text
from claw.types.usage import Usage

__all__ = ["SCHEMA", "Asked", "Line", "Script", "line_of", "load_script", "read_script", "reply_of"]

SCHEMA = 1
"""Of recordings; what a newer claw wrote under a higher number is refused."""
LARGEST_SCRIPT = 32 * 1024 * 1024  # bytes
_NO_USAGE = Usage()

_ERRORS: dict[str, type[ModelError]] = {
    cls.kind: cls
    for cls in (
        ModelError,
        ModelUnavailable,
        AuthenticationFailed,
        RequestRejected,
        ContextOverflow,
        OutputLimitTooHigh,
        ParameterRefused,
        ProtocolViolation,
    )
}


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What was new in a request. ``tools`` are names, None where they were the same before.

    ``anew`` says that it does not begin with the request before it: after a compaction, or
    in another session. Then ``messages`` are all there are.
    """

    anew: bool = False
    tools: tuple[str, ...] | None = None
    messages: tuple[Message, ...] = ()


class _Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    name: str
    input: dict[str, Any] = {}
    id: str = ""
    raw_input: str | None = None


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One reply of a script file, as in ``load_script``."""

    request: Asked | None = None
    text: str = ""
    calls: tuple[_Call, ...] = ()
    thinking: str = ""
    signature: str = ""
    blocks: tuple[AssistantBlock, ...] = ()
    stop_reason: str | None = None
    model: str = ""
    request_id: str = ""
    usage: Usage = _NO_USAGE
    usd: float | None = None
    provider_metadata: dict[str, Any] = {}
    cut: bool | int = False
    error: (
        Literal[
            "model",
            "model_unavailable",
            "authentication",
            "request_rejected",
            "context_overflow",
            "output_limit_too_high",
            "parameter_refused",
            "protocol_violation",
        ]
        | None
    ) = None
    message: str = ""
    hint: str = ""
    provider: str = ""
    status: int | None = None
    retry_after: float | None = None
    max_tokens: int | None = None
    limit_tokens: int | None = None
    parameter: str = ""


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A recording. ``model`` is the name that was asked for, ``window`` its context window
    in tokens, None where that is not known."""

    schema: int
    model: str = ""
    window: int | None = None
    replies: tuple[str | Line, ...] = ()


def load_script(path: str, places: Mapping[str, str] | None = None) -> list[ScriptReply]:
    """Read replies from a JSON file, or from a YAML file where PyYAML is installed.

    The file is a list; each item is one reply: a text, or an object of ::

        text, thinking, signature, stop_reason    texts
        calls       [{name, input, id, raw_input}]; all but name optional
        blocks      instead of these: the blocks of the reply in their order, as in a journal
        usage       {input_tokens, output_tokens, cache_read_input_tokens,
                    cache_creation_input_tokens}; estimated where it is left out
        model, request_id, provider_metadata      what the server said of itself
        cut         true: the stream dies after this content; a number: after so many events
        error       a kind of ModelError (model, model_unavailable, authentication,
                    request_rejected, context_overflow, output_limit_too_high,
                    parameter_refused, protocol_violation), raised after the content, with
                    message, hint, provider, status, retry_after (seconds), max_tokens,
                    limit_tokens, parameter
        request, usd                              of a recording, which plays as a script too

    ``places`` are the paths that a recording's names (``CWD``, ``HOME``, ``BLOBS``) stand
    for here. Raises ``ConfigError`` naming the file, the place in it and what is allowed there.
    """
    script, is_recording = _read(path)
    return [
        reply_of(path, at, line, (places or {}) if is_recording else None)
        for at, line in enumerate(script.replies)
    ]


def read_script(path: str) -> Script:
    """A recording; a plain script is one that does not say what is asked.

    Raises ``ConfigError`` as ``load_script``.
    """
    return _read(path)[0]


def _read(path: str) -> tuple[Script, bool]:
    found = _parse(path, _text_of(path))
    is_recording = isinstance(found, dict)
    if isinstance(found, dict):
        _refuse_newer(path, found.get("schema"))
    try:
        if is_recording:
            return msgspec.convert(found, Script), True
        return Script(SCHEMA, replies=msgspec.convert(found, tuple[str | Line, ...])), False
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"{path}: {error}",
            hint="A script is a list of texts and objects with the fields "
            f"{', '.join(Line.__struct_fields__)}; error is one of {', '.join(_ERRORS)}. "
            f"A recording is an object of {', '.join(Script.__struct_fields__)}.",
        ) from error


def _refuse_newer(path: str, schema: object) -> None:
    if isinstance(schema, int) and schema > SCHEMA:
        raise ConfigError(
            f"{path} was recorded by a newer claw: its schema is {schema}, and this claw reads "
            f"{SCHEMA}",
            hint="Upgrade claw, or record it again with `--claw-record`.",
        )


def reply_of(
    path: str, at: int, line: str | Line, places: Mapping[str, str] | None = None
) -> PlainReply:
    """Item ``at`` of the file as a reply, with its paths on this machine.

    Without ``places`` its texts stand as they are. Raises ``ConfigError``.
    """
    if places is not None:
        placed = each_text(msgspec.to_builtins(line), partial(with_places, places=places))
        line = msgspec.convert(placed, type(line))
    if isinstance(line, str):
        return says(line)
    reply = _content_of(path, at, line)
    if line.error is not None:
        has_content = reply.blocks or line.usage != _NO_USAGE
        return Fails(_error(path, at, line), reply if has_content else None)
    return Cut(reply, line.cut) if line.cut is not True and line.cut is not False else reply


def line_of(reply: Reply, error: ModelError | None = None) -> Line:
    """What ``reply_of`` reads as this reply, and the error after it."""
    short = Line(
        text=reply.text,
        calls=tuple(_Call(c.name, c.input, c.id, c.raw_input) for c in reply.tool_calls),
        thinking=reply.thinking,
        signature="".join(getattr(block, "signature", "") for block in reply.blocks),
    )
    if _content_of("", 0, short).blocks != reply.blocks:
        short = Line(blocks=reply.blocks)
    follows = _content_of("", 0, short).stop_reason == reply.stop_reason
    line = replace(
        short,
        stop_reason=None if follows or error or not reply.complete else reply.stop_reason,
        model=reply.model,
        request_id=reply.request_id,
        usage=_NO_USAGE if reply.usage == _NO_USAGE else reply.usage,  # the default is left out
        provider_metadata=reply.provider_metadata,
        cut=not reply.complete and error is None,
    )
    return line if error is None else _with_error(line, error)


def _with_error(line: Line, error: ModelError) -> Line:
    return replace(
        line,
        error=error.kind,
        message=error.message,
        hint=error.hint,
        provider=error.provider,
        model=line.model or error.model,
        request_id=line.request_id or error.request_id,
        status=error.status,
        retry_after=error.retry_after,
        max_tokens=getattr(error, "max_tokens", None),
        limit_tokens=getattr(error, "limit_tokens", None),
        parameter=getattr(error, "parameter", ""),
    )


def _content_of(path: str, at: int, line: Line) -> Reply:
    """What the line says before its error, in a stream that ends well or is cut there."""
    if line.blocks and (line.text or line.calls or line.thinking or line.signature):
        raise ConfigError(
            f"{path}: `blocks` stand instead of `text`, `calls` and `thinking` - at `$[{at}]`",
            hint="Use the one or the others.",
        )
    wanted = (ToolUse(c.id, c.name, c.input, c.raw_input) for c in line.calls)
    reply = calls(*wanted, text=line.text, thinking=line.thinking, signature=line.signature)
    blocks = line.blocks or reply.blocks
    complete = line.cut is not True and line.error is None
    reason = line.stop_reason
    if reason is None:
        reason = "tool_use" if any(isinstance(b, ToolUse) for b in blocks) else "end_turn"
    return Reply(
        blocks=blocks,
        stop_reason=reason if complete else "",
        usage=line.usage,
        model=line.model,
        complete=complete,
        request_id=line.request_id,
        provider_metadata=line.provider_metadata,
    )


def _error(path: str, at: int, line: Line) -> ModelError:
    message = line.message or f"scripted {line.error}"
    about: dict[str, Any] = {
        name: getattr(line, name) for name in ("hint", "provider", "model", "request_id", "status")
    }
    if line.error == "context_overflow":
        return ContextOverflow(message, limit_tokens=line.limit_tokens, **about)
    if line.error == "output_limit_too_high":
        if line.max_tokens is None:
            raise ConfigError(
                f"{path}: `max_tokens` is missing - at `$[{at}]`",
                hint="The error output_limit_too_high carries the `max_tokens` that would fit.",
            )
        return OutputLimitTooHigh(message, max_tokens=line.max_tokens, **about)
    if line.error == "parameter_refused":
        return ParameterRefused(message, parameter=line.parameter, **about)
    assert line.error is not None
    return _ERRORS[line.error](message, retry_after=line.retry_after, **about)


def _text_of(path: str) -> str:
    """Of a regular file only: a pipe would hold up the start, a device never ends."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise ConfigError(f"the script {path} is no regular file")
            with open(fd, "rb", closefd=False) as file:
                data = file.read(LARGEST_SCRIPT + 1)
        finally:
            os.close(fd)
        if len(data) > LARGEST_SCRIPT:
            most = f"{LARGEST_SCRIPT // 1024 // 1024} MiB"
            raise ConfigError(f"the script {path} is larger than {most}")
        return data.decode()
    except OSError as error:
        raise ConfigError(f"cannot read the script {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the script {path} is not UTF-8 text: {error}") from error


def _parse(path: str, text: str) -> object:
    import json

    try:
        return json.loads(text)
    except RecursionError as error:
        raise ConfigError(f"{path}: nested too deeply for a script") from error
    except json.JSONDecodeError as error:
        if not path.endswith((".yaml", ".yml")):
            raise ConfigError(
                f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}",
                hint="A script is a JSON list of replies; name the file .yaml for YAML.",
            ) from error
    try:
        yaml = import_module("yaml")  # an optional package
    except ImportError as error:
        raise ConfigError(
            f"{path}: YAML scripts need PyYAML, which is not installed",
            hint="Install `pyyaml`, or write the script as JSON.",
        ) from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {error}") from error
