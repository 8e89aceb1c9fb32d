"""Model servers on this machine, found on the ports that they usually listen on.

Only to tell people of them: nothing is ever sent to one that nobody named.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from claw.errors import ModelError
from claw.models.http import HttpRequest, StreamCut, Timeouts, Transport
from claw.models.payloads import parse_json
from claw.models.transport import HttpTransport

__all__ = ["USUAL_PORTS", "LocalServer", "find_local_servers"]

USUAL_PORTS = (
    ("llamacpp", 8080),
    ("ollama", 11434),
    ("lmstudio", 1234),
    ("vllm", 8000),
    ("sglang", 30000),
    ("litellm", 4000),
)
"""With the name as which ``--model NAME/MODEL`` reaches what listens there."""

TIMEOUT = 0.3  # seconds
MOST_BYTES = 1024 * 1024


class LocalServer(msgspec.Struct, frozen=True):
    """``name`` is that of ``USUAL_PORTS``, whatever listens there; ``models`` are the server's."""

    name: str
    base_url: str
    models: tuple[str, ...]


async def find_local_servers(
    ports: Sequence[tuple[str, int]] = USUAL_PORTS,
    *,
    timeout: float = TIMEOUT,
) -> tuple[LocalServer, ...]:
    """Ask each port for its models, all at once; whoever gives a list in time is a server.

    ``timeout`` is in seconds, for the whole answer. Never raises.
    """
    transport = HttpTransport(Timeouts(timeout, timeout, timeout))
    transport.warm("http://127.0.0.1")  # else the imports would eat the first one's time
    try:
        asked = (_ask(transport, name, port, timeout) for name, port in ports)
        return tuple(server for server in await asyncio.gather(*asked) if server is not None)
    finally:
        await transport.aclose()


async def _ask(transport: Transport, name: str, port: int, timeout: float) -> LocalServer | None:
    base_url = f"http://127.0.0.1:{port}/v1"
    request = HttpRequest(f"{base_url}/models", {"accept": "application/json"}, method="GET")
    try:
        async with asyncio.timeout(timeout):
            body = await _body(transport, request)
            models = _names(parse_json(body))
    except (ModelError, StreamCut, TimeoutError, ValueError, RecursionError):
        return None
    return None if models is None else LocalServer(name, base_url, models)


async def _body(transport: Transport, request: HttpRequest) -> bytes:
    response = await transport.send(request)
    try:
        if response.status != 200:
            raise ValueError("no list")
        body = b""
        async for chunk in response.chunks:
            body += chunk
            if len(body) > MOST_BYTES:
                raise ValueError("too long for a list of models")
        return body
    finally:
        await response.close()


def _names(answer: object) -> tuple[str, ...] | None:
    """The ids of ``GET /v1/models``; None for an answer of another form."""
    listed = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(listed, list):
        return None
    ids = (item.get("id") for item in listed if isinstance(item, dict))
    return tuple(name for name in ids if isinstance(name, str) and name)
