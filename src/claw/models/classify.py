"""From what a server refused with to the one error that says what to do about it.

Status and type decide first, text second, and never text that may be quoted.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any

import msgspec

from claw.errors import (
    AuthenticationFailed,
    ContextOverflow,
    ModelError,
    ModelUnavailable,
    OutputLimitTooHigh,
    RequestRejected,
)
from claw.models.overflow import (
    limit_tokens,
    output_that_fits,
    says_overflow,
    without_quotations,
)
from claw.models.payloads import parse_json
from claw.types.surrogates import mend

__all__ = ["classify_error", "classify_event", "retry_after"]

MAX_BODY = 256 * 1024
MAX_MESSAGE = 600
MAX_DEPTH = 12
"""Proxies wrap an error in an error as text in an error, each two levels deep."""

_RETRY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})

_STATUS_OF_TYPE = {
    "api_error": 500,
    "authentication_error": 401,
    "billing_error": 402,
    "insufficient_quota": 429,
    "internal_error": 500,
    "internal_server_error": 500,
    "invalid_api_key": 401,
    "invalid_request_error": 400,
    "not_found_error": 404,
    "overloaded_error": 529,
    "permission_denied": 403,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "request_too_large": 413,
    "server_error": 500,
    "server_is_overloaded": 503,
    "slow_down": 503,
    "timeout_error": 504,
    "usage_limit_reached": 429,
}

_BLAMES_THE_REQUEST = (
    r"^(?:invalid(?!_?response)|unsupported)|bad_?request|^image_|^empty_image|policy|not_?found"
)
"""In codes of errors inside a stream, such as those of the Responses API's failures."""

_NO_KEY = frozenset(
    {"authentication_error", "invalid_api_key", "api_key_invalid", "unauthenticated"}
)
_NO_KEY_TEXT = r"(?i)(?:incorrect|invalid|no|missing) api[ _-]?key|api key not valid"
_NO_MONEY = frozenset({"insufficient_quota", "billing_error", "usage_limit_reached"})
_NO_MONEY_TEXT = (
    r"(?i)exceeded your current quota|insufficient (?:balance|credit|funds)"
    r"|credit balance is too low|extra usage is required|billing hard limit|not enough credits"
)
_TOKENS_A_MINUTE = r"(?i)limit (\d+),? requested (\d+)"

_HINTS = {
    401: "Check the API key, and that it belongs to this server.",
    402: "The account has no credit for this request; see the provider's billing page.",
    403: "The key may not use this model or feature.",
    404: "Check the model's name and the base URL.",
}
_REFUSED = "Check the model's name and its provider's settings, or try another model."


_NOTABLE_WAIT = 60.0
"""Seconds; whoever is told to wait longer wants to know how long."""


class _Fault(msgspec.Struct, frozen=True):
    """What an error body says. ``codes`` are its types and codes in lower case."""

    codes: tuple[str, ...]
    message: str
    status: int | None
    wait: float | None
    request_id: str


def classify_error(
    status: int,
    body: bytes | str | dict[str, Any] | list[Any] | None,
    headers: Mapping[str, str] | None = None,
    *,
    provider: str = "",
    model: str = "",
) -> ModelError:
    """The error for an HTTP status that is no success.

    ``body`` may be anything: JSON of any shape, as text or read already, JSON inside
    JSON, a page, nothing.
    """
    data = body.encode("utf-8", "replace") if isinstance(body, str) else body
    lower = {name.lower(): value for name, value in (headers or {}).items()}
    fault = _fault(data) if isinstance(data, dict | list) else _read((data or b"")[:MAX_BODY])
    waits = [w for w in (retry_after(lower), fault.wait) if w is not None]
    may_retry = lower.get("x-should-retry", "").strip().lower() != "false"
    error = _verdict(status, fault, max(waits, default=None), f"status {status}", may_retry)
    error.status = status
    error.provider, error.model = provider, model
    error.request_id = (
        lower.get("request-id") or lower.get("x-request-id") or fault.request_id or ""
    )
    return error


def classify_event(value: Any, *, request_id: str = "") -> ModelError:
    """The error for an error event inside a stream that began with success."""
    fault = _fault(value)
    status = fault.status or next(filter(None, map(_status_of, fault.codes)), None)
    named = (code for code in fault.codes if code != "error")
    mark = f"status {fault.status}" if fault.status else next(named, "no status")
    # Unnamed trouble after a good beginning is the server's: worth another try.
    error = _verdict(status or 500, fault, fault.wait, mark)
    error.status = status
    error.request_id = request_id or fault.request_id
    return error


def _status_of(code: str) -> int | None:
    """The status that a type or code stands for; one that blames the request is a 400."""
    known = _STATUS_OF_TYPE.get(code)
    return known or (400 if re.search(_BLAMES_THE_REQUEST, code) else None)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by ``retry-after-ms`` or ``retry-after`` (seconds or a date).

    Names in lower case. Never negative; nonsense counts as absent.
    """
    try:
        milliseconds = float(headers["retry-after-ms"]) / 1000
        if isfinite(milliseconds):
            return max(0.0, milliseconds)
    except (KeyError, ValueError):
        pass
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        then = _http_date(text)
        if then is None:
            return None
        now = _http_date(headers.get("date", ""))  # the server's own clock, where it tells
        seconds = then - (time.time() if now is None else now)
    return max(0.0, seconds) if isfinite(seconds) else None


_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DATE = r"(\d{1,2})[ -]([A-Za-z]{3})[ -](\d{4}) (\d\d):(\d\d):(\d\d)"


def _http_date(text: str) -> float | None:
    """Seconds since the epoch of a date as in RFC 9110, section 5.6.7."""
    found = re.search(_DATE, text)
    if found is None or found[2].lower() not in _MONTHS:
        return None
    month = _MONTHS.index(found[2].lower()) + 1
    day, year, hour, minute, second = (int(found[i]) for i in (1, 3, 4, 5, 6))
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _verdict(
    status: int, fault: _Fault, wait: float | None, mark: str, may_retry: bool = True
) -> ModelError:
    """``mark`` is what the server itself named the error by."""
    message = f"{fault.message or 'no explanation'} ({mark})"
    plain = without_quotations(fault.message)
    hint = _HINTS.get(status, "")
    if status == 401 or any(c in _NO_KEY for c in fault.codes) or re.search(_NO_KEY_TEXT, plain):
        return AuthenticationFailed(message, hint=_HINTS[401])
    if (
        status == 402
        or any(c in _NO_MONEY for c in fault.codes)
        or re.search(_NO_MONEY_TEXT, plain)
    ):
        return RequestRejected(message, hint=_HINTS[402], retry_after=wait)
    if status not in _RETRY or status == 500:
        too_big = _too_big(status, fault, plain, message)
        if too_big is not None:
            return too_big
    if status == 403:
        return AuthenticationFailed(message, hint=hint)
    if status in _RETRY or status >= 500:
        if wait is not None and wait > _NOTABLE_WAIT:
            hint = f"The server asks to wait for {_duration(wait)}."
        if not may_retry:
            return RequestRejected(message, hint=hint, retry_after=wait)
        return ModelUnavailable(message, hint=hint, retry_after=wait)
    return RequestRejected(message, hint=hint or _REFUSED)


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours else f"{minutes} min"


def _too_big(status: int, fault: _Fault, plain: str, message: str) -> ModelError | None:
    fits = output_that_fits(plain)
    if fits is not None:
        return OutputLimitTooHigh(message, max_tokens=fits)
    if status == 413 and "rate_limit_exceeded" in fault.codes:
        found = re.search(_TOKENS_A_MINUTE, plain)
        if found is not None and int(found[2]) > int(found[1]):
            return RequestRejected(
                message, hint="The request is larger than the account may send in one minute."
            )
        return ModelUnavailable(message, retry_after=fault.wait)
    if status == 413 or (status not in {403, 404} and says_overflow(fault.codes, plain)):
        return ContextOverflow(message, limit_tokens=limit_tokens(plain))
    return None


def _read(body: bytes) -> _Fault:
    if not body.strip():
        return _Fault((), "", None, None, "")
    try:
        return _fault(parse_json(body))
    except ValueError:
        return _fault(_from_page(body.decode("utf-8", "replace")))


_TITLE = r"(?is)<title[^>]*>(.*?)</title>"
_TAG = r"<[^>]*>"


def _from_page(text: str) -> str:
    if "<" not in text:
        return text
    found = re.search(_TITLE, text)
    return found[1] if found else re.sub(_TAG, " ", text)


def _fault(value: Any, depth: int = 0) -> _Fault:
    """The error in a body or event: an object, a list with one, or a text with one inside."""
    if isinstance(value, list):
        value = value[0] if value else ""
    if isinstance(value, str):
        if depth < MAX_DEPTH and value.lstrip()[:1] in ("{", "["):
            try:
                return _fault(parse_json(value.strip().encode("utf-8", "replace")), depth + 1)
            except ValueError:
                pass
        message = mend(" ".join(value.split()))
        return _Fault((), message[:MAX_MESSAGE], None, _wait_in(message), "")
    if not isinstance(value, dict):
        return _Fault((), "", None, None, "")
    codes, status = _codes(value)
    request_id = value.get("request_id")
    metadata = value.get("metadata")
    upstream = metadata.get("raw") if isinstance(metadata, dict) else None  # a router's source
    faults: list[_Fault] = []
    for part in (value.get("error"), value.get("response"), upstream):
        if part and depth < MAX_DEPTH:
            faults.append(_fault(part, depth + 1))
    for name in ("message", "detail", "msg", "error_description", "title"):
        if value.get(name) and depth < MAX_DEPTH:
            faults.append(_fault(value[name], depth + 1))
            break
    messages = dict.fromkeys(f.message for f in faults if f.message)
    return _Fault(
        tuple(dict.fromkeys((*codes, *(c for f in faults for c in f.codes)))),
        ": ".join(messages)[:MAX_MESSAGE],
        next((f.status for f in faults if f.status), status),
        _longest((_wait_field(value), *(f.wait for f in faults))),
        request_id
        if isinstance(request_id, str)
        else next((f.request_id for f in faults if f.request_id), ""),
    )


def _codes(value: dict[str, Any]) -> tuple[list[str], int | None]:
    codes: list[str] = []
    status = None
    for name in ("type", "code", "status", "status_code", "reason"):
        code = value.get(name)
        if isinstance(code, str) and code.isdigit() and len(code) == 3:
            code = int(code)
        if isinstance(code, int) and not isinstance(code, bool):
            if 400 <= code <= 599:
                status = status or code
            else:
                codes.append(str(code))
        elif isinstance(code, str) and code:
            codes.append(code.lower())
    return codes, status


def _wait_field(value: dict[str, Any]) -> float | None:
    for name in ("resets_in_seconds", "retry_after", "retry_after_seconds"):
        seconds = value.get(name)
        if isinstance(seconds, int | float) and isfinite(seconds):
            return max(0.0, float(seconds))
    return None


_WAIT = (
    r"(?i)(?:try again in|retry in|retry after|wait) "
    r"(?:(\d+)h)? ?(?:(\d+)m(?!s))? ?(?:(\d+(?:\.\d+)?) ?(ms|s\b|sec|seconds))?"
)


def _wait_in(message: str) -> float | None:
    """The wait that a message names: "try again in 7m12s", "retry in 850ms"."""
    found = re.search(_WAIT, message)
    if found is None or not any(found.group(1, 2, 3)):
        return None
    hours, minutes, number, unit = found.groups()
    seconds = float(number or 0) / (1000 if unit == "ms" else 1)
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + seconds


def _longest(waits: tuple[float | None, ...]) -> float | None:
    return max((w for w in waits if w is not None), default=None)
