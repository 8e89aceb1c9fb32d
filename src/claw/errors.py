"""Every exception that claw raises, as one tree.

::

    ClawError                       .hint: what the user can do;  .kind: stable word for JSON
      ConfigError                   a setting, flag or file that cannot be used
        WrongUse                    a flag's value that makes no sense: exit code 2
      ModelError                    .provider .model .request_id .status .retry_after
        ModelUnavailable            worth a retry: connection, timeout, 429, 5xx, overloaded
        AuthenticationFailed        no key, or one that the server refuses
        RequestRejected             the same request would be refused again
          ContextOverflow           .limit_tokens: the window, where the server named it
          OutputLimitTooHigh        .max_tokens: what would fit
          ParameterRefused          .parameter: not sent to this server any more
        ProtocolViolation           an impossible or empty stream
      ToolFailed                    becomes an error result; never leaves the runtime
      SessionError
        SessionNotFound
        SessionCorrupt              .line
        SessionLocked               .pid of the holder
        SessionTooNew
        SessionUnhealthy
      IntegrationError              an MCP server, plugin or skill misbehaved
      ReplayMismatch                names the first step and field that differ

Denied, interrupted, limit reached, blocked by a hook are *outcomes*: values in
entries, not exceptions. Errors hold plain values only. Foreign exceptions are
translated once, in the adapter that met them, with ``raise ... from``.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypedDict, Unpack

__all__ = [
    "AuthenticationFailed",
    "ClawError",
    "ConfigError",
    "ContextOverflow",
    "IntegrationError",
    "ModelError",
    "ModelUnavailable",
    "OutputLimitTooHigh",
    "ParameterRefused",
    "ProtocolViolation",
    "ReplayMismatch",
    "RequestRejected",
    "SessionCorrupt",
    "SessionError",
    "SessionLocked",
    "SessionNotFound",
    "SessionTooNew",
    "SessionUnhealthy",
    "ToolFailed",
    "WrongUse",
]


class ClawError(Exception):
    """Something that claw can name. ``hint`` says what the user can do about it."""

    kind: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ConfigError(ClawError):
    """A setting, flag combination or configuration file that cannot be used."""

    kind = "config"


class WrongUse(ConfigError):
    """The value of a flag makes no sense: the command was used wrongly."""

    kind = "usage"


class ModelError(ClawError):
    """A model server did not give a reply.

    ``retry_after`` is in seconds. ``status`` is the HTTP status, or None where
    no answer came at all. ``advice`` is the whole retry policy's input: try the
    same again after a while, try with a lower ``max_tokens``, ask again at once
    since the client has mended its request, or never unchanged.
    """

    kind = "model"
    advice: ClassVar[Literal["retry", "lower_output", "mended", "never"]] = "never"

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        provider: str = "",
        model: str = "",
        request_id: str = "",
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.provider = provider
        self.model = model
        self.request_id = request_id
        self.status = status
        self.retry_after = retry_after


class ModelUnavailable(ModelError):
    """The server may answer later: connection, timeout, rate limit, overload, 5xx."""

    kind = "model_unavailable"
    advice = "retry"


class AuthenticationFailed(ModelError):
    """No credentials, or credentials that the server refuses."""

    kind = "authentication"


class RequestRejected(ModelError):
    """The server refused this request and would refuse it again unchanged."""

    kind = "request_rejected"


class _About(TypedDict, total=False):
    """What ``ModelError`` takes besides its message."""

    hint: str
    provider: str
    model: str
    request_id: str
    status: int | None


class ContextOverflow(RequestRejected):
    """The request does not fit the model's context window."""

    kind = "context_overflow"

    def __init__(
        self, message: str, *, limit_tokens: int | None = None, **about: Unpack[_About]
    ) -> None:
        super().__init__(message, **about)
        self.limit_tokens = limit_tokens


class OutputLimitTooHigh(RequestRejected):
    """Input and ``max_tokens`` together exceed the window; ``max_tokens`` would fit."""

    kind = "output_limit_too_high"
    advice = "lower_output"

    def __init__(self, message: str, *, max_tokens: int, **about: Unpack[_About]) -> None:
        super().__init__(message, **about)
        self.max_tokens = max_tokens


class ParameterRefused(RequestRejected):
    """The server does not know an optional ``parameter``; the client leaves it out from now on."""

    kind = "parameter_refused"
    advice = "mended"

    def __init__(self, message: str, *, parameter: str, **about: Unpack[_About]) -> None:
        super().__init__(message, **about)
        self.parameter = parameter


class ProtocolViolation(ModelError):
    """The server sent what no reading of its dialect allows, or nothing at all."""

    kind = "protocol_violation"


class ToolFailed(ClawError):
    """A tool could not do what it was asked to; the message is for the model.

    ``kept`` is what the tool had already produced, shown before the message.
    """

    kind = "tool_failed"

    def __init__(self, message: str, *, kept: str = "") -> None:
        super().__init__(message)
        self.kept = kept


class SessionError(ClawError):
    """A session cannot be opened, read or written."""

    kind = "session"


class SessionNotFound(SessionError):
    """No session goes by that reference."""

    kind = "session_not_found"


class SessionCorrupt(SessionError):
    """A record in the middle of a journal is damaged; ``line`` counts from 1."""

    kind = "session_corrupt"

    def __init__(self, message: str, *, line: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.line = line


class SessionLocked(SessionError):
    """Another process writes this session; ``pid`` is its id, 0 where unknown."""

    kind = "session_locked"

    def __init__(self, message: str, *, pid: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.pid = pid


class SessionTooNew(SessionError):
    """The journal was written by a claw with a newer schema."""

    kind = "session_too_new"


class SessionUnhealthy(SessionError):
    """The health probe failed: the tools or the workspace of a session do not answer."""

    kind = "session_unhealthy"


class IntegrationError(ClawError):
    """An MCP server, plugin or skill misbehaved."""

    kind = "integration"


class ReplayMismatch(ClawError):
    """A replay differs from its recording first at this ``turn``, ``step`` and ``field``."""

    kind = "replay_mismatch"

    def __init__(self, message: str, *, turn: int, step: int, field: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.turn = turn
        self.step = step
        self.field = field
