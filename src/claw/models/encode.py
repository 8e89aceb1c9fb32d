"""Conversations to request bodies: the encoders without a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from claw.errors import ConfigError
from claw.models.anthropic.encode import encode as encode_anthropic
from claw.models.dialect import DIALECTS
from claw.models.openai_chat.encode import encode as encode_chat
from claw.models.openai_responses.encode import encode as encode_responses
from claw.models.wire_text import BlobsGet, no_blobs
from claw.types.messages import Message
from claw.types.request import Request, Sampling
from claw.types.surrogates import mend_all
from claw.types.tools import ToolSpec
from claw.types.transcript import Transcript, repair

__all__ = ["encode_request"]


def encode_request(
    dialect: str,
    transcript: Transcript | Sequence[Message],
    tools: Sequence[ToolSpec] = (),
    system: str = "",
    *,
    blobs_get: BlobsGet = no_blobs,
    **sampling: Any,
) -> dict[str, Any]:
    """The body that a client would send, streaming. ``sampling`` is as in ``Sampling``.

    Messages that are no ``Transcript`` yet are repaired as those of a session are:
    every call gets its result directly after it.

    Without a ``model`` every message of an assistant counts as the asked model's own.

    Raises ``ConfigError`` for a dialect that claw does not speak.
    """
    if not isinstance(transcript, Transcript):
        transcript = repair(transcript)
    request = Request(
        system, transcript.messages, tuple(tools), Sampling(**{"model": "", **sampling})
    )
    match dialect:
        case "anthropic":
            body = encode_anthropic(request, blobs_get=blobs_get)
        case "openai-chat":
            body = encode_chat(request, blobs_get=blobs_get)
        case "openai-responses":
            body = encode_responses(request, blobs_get=blobs_get)
        case _:
            raise ConfigError(f"unknown dialect `{dialect}`", hint=f"Known: {', '.join(DIALECTS)}.")
    mended: dict[str, Any] = mend_all(body)  # what a client does with the bytes
    return mended
