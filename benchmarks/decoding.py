"""How fast replies are decoded, beside the vendors' own SDKs.

Every reader gets the same recorded streams of the corpus (``$CLAW_SHARED/cases``, or
``../shared/cases`` beside the project), one event a chunk as servers send them, and must
come to the end of the message: events, parsed tool inputs, usage, the whole reply.
Streams on which one of the readers of a dialect fails are left out for all of them.

    .venv/bin/python benchmarks/decoding.py [--rounds 3] [--json]

claw         our decoder and the fold into a ``Reply``, in process
claw whole   the same with the whole body in one chunk
claw socket  our client, with all that it does for an exchange: the request, HTTP over a
             kept loopback connection, timeouts; the server is a process of its own
sdk          the SDK's streaming helper, which gives the accumulated message:
             ``beta.messages.stream``, ``chat.completions.stream``, ``responses.stream``
sdk create   ``create(stream=True)`` of the OpenAI SDK: typed events, no accumulated message

Times are CPU seconds of this process, for each stream the best of the rounds, then the
sum. An SDK is fed by ``httpx2.MockTransport``; its clock runs from the answer's head to
the end of the stream, so that neither its client's construction nor its request counts.
``times`` is how many times faster than the SDK's helper a reader is.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import re
import socketserver
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from threading import Thread
from typing import Any

import anthropic
import httpx2
import openai

from claw.models.anthropic.client import AnthropicClient
from claw.models.decode import decode
from claw.models.openai_chat.client import OpenAIChatClient
from claw.models.openai_responses.client import OpenAIResponsesClient
from claw.models.transport import HttpTransport
from claw.types.messages import Text, UserMessage
from claw.types.reply import assemble
from claw.types.request import Request, Sampling

PROJECT = Path(__file__).resolve().parent.parent
CASES = Path(os.environ.get("CLAW_SHARED", PROJECT.parent / "shared")) / "cases"
DIALECTS = {
    "anthropic-messages": "anthropic",
    "openai-chat": "openai-chat",
    "openai-responses": "openai-responses",
}
CLIENTS = {
    "anthropic": (AnthropicClient, ""),
    "openai-chat": (OpenAIChatClient, "/v1"),
    "openai-responses": (OpenAIResponsesClient, "/v1"),
}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
REQUEST = Request("", (UserMessage((Text("x"),)),), (), Sampling("m", max_tokens=9))
MESSAGES: Any = [{"role": "user", "content": "x"}]

Chunks = list[bytes]
Reader = Callable[[Chunks], float]


def streams() -> dict[str, list[Chunks]]:
    """The streamed replies of each dialect, as lists of events."""
    found: dict[str, list[Chunks]] = {dialect: [] for dialect in DIALECTS.values()}
    for path in sorted(CASES.glob("streams/*/*.json")):
        case = json.loads(path.read_bytes())
        if case.get("api") not in DIALECTS or case["response"]["status"] >= 400:
            continue
        body = case["response"]["body_text"]
        if body.lstrip()[:1] not in ("{", "[", '"') and case["expected"]["ok"]:
            events = [event.encode() for event in re.split(r"(?<=\n\n)", body) if event]
            found[DIALECTS[case["api"]]].append(events)
    return found


# Ours


def in_process(dialect: str) -> Reader:
    def read(chunks: Chunks) -> float:
        began = time.process_time()
        decode(dialect, chunks)
        return time.process_time() - began

    return read


def whole(dialect: str) -> Reader:
    read = in_process(dialect)
    return lambda chunks: read([b"".join(chunks)])


class Sender(socketserver.StreamRequestHandler):
    """Answers ``/DIALECT/NUMBER/...`` with that stream, a chunk an event."""

    streams: dict[str, list[Chunks]]

    def handle(self) -> None:
        while line := self.rfile.readline():
            _, dialect, number, *_ = line.split()[1].decode().split("/")
            length = 0
            while (header := self.rfile.readline().strip().lower()) != b"":
                if header.startswith(b"content-length:"):
                    length = int(header.partition(b":")[2])
            self.rfile.read(length)
            self.wfile.write(HEAD)
            for chunk in self.streams[dialect][int(number)]:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.write(b"0\r\n\r\n")


def serve() -> None:
    """Send streams from a free port, which is printed, until stdin ends."""
    Sender.streams = streams()
    socketserver.ThreadingTCPServer.daemon_threads = True
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Sender) as server:
        print(server.server_address[1], flush=True)
        Thread(target=server.serve_forever, daemon=True).start()
        sys.stdin.read()
        server.shutdown()


def over_socket(dialect: str, port: int, numbers: list[int], rounds: int) -> dict[int, float]:
    """Seconds for each stream, the best of the rounds."""
    kind, path = CLIENTS[dialect]

    async def run() -> dict[int, float]:
        transport = HttpTransport()
        best: dict[int, float] = {}
        for number in numbers * (rounds + 1):  # the first round opens the connection
            url = f"http://127.0.0.1:{port}/{dialect}/{number}{path}"
            client = kind(transport, base_url=url, api_key="k")
            began = time.process_time()
            async with aclosing(client.stream(REQUEST)) as events:
                assemble([event async for event in events])
            best[number] = min(best.get(number, 1e9), time.process_time() - began)
        await transport.aclose()
        return best

    return asyncio.run(run())


# The SDKs


def drained(stream: Any, result: str = "") -> float:
    began = time.process_time()
    for _ in stream:
        pass
    if result:
        getattr(stream, result)()
    return time.process_time() - began


def mock(chunks: Chunks) -> httpx2.Client:
    def answer(request: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, content=iter(chunks))

    return httpx2.Client(transport=httpx2.MockTransport(answer))


def anthropic_sdk(chunks: Chunks) -> float:
    with (
        anthropic.Anthropic(api_key="k", max_retries=0, http_client=mock(chunks)) as client,
        client.beta.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as stream,
    ):
        return drained(stream, "get_final_message")


def openai_sdk(dialect: str, *, accumulates: bool) -> Reader:
    def read(chunks: Chunks) -> float:
        with openai.OpenAI(api_key="k", max_retries=0, http_client=mock(chunks)) as client:
            match dialect, accumulates:
                case "openai-chat", True:
                    with client.chat.completions.stream(model="m", messages=MESSAGES) as chat:
                        return drained(chat, "get_final_completion")
                case "openai-chat", False:
                    return drained(
                        client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
                    )
                case _, True:
                    with client.responses.stream(model="m", input="x") as response:
                        return drained(response, "get_final_response")
                case _:
                    return drained(client.responses.create(model="m", input="x", stream=True))

    return read


def readers(dialect: str) -> dict[str, Reader]:
    ours = {"claw": in_process(dialect), "claw whole": whole(dialect)}
    if dialect == "anthropic":
        return {**ours, "sdk": anthropic_sdk}
    return {
        **ours,
        "sdk": openai_sdk(dialect, accumulates=True),
        "sdk create": openai_sdk(dialect, accumulates=False),
    }


def can_read(read: Reader, chunks: Chunks) -> bool:
    try:
        read(chunks)
    except Exception:  # whatever an SDK makes of a stream that it cannot read
        return False
    return True


def measure(dialect: str, bodies: list[Chunks], port: int, rounds: int) -> list[dict[str, Any]]:
    table = readers(dialect)
    numbers = [
        number
        for number, chunks in enumerate(bodies)
        if all(can_read(read, chunks) for read in table.values())
    ]
    best: dict[str, dict[int, float]] = {name: {} for name in table}
    gc.collect()
    gc.freeze()  # what the SDKs loaded is none of a stream's garbage
    for number in numbers:
        for name, read in table.items():
            best[name][number] = min(read(bodies[number]) for _ in range(rounds))
    best["claw socket"] = over_socket(dialect, port, numbers, rounds)
    size = sum(len(chunk) for number in numbers for chunk in bodies[number])
    events = sum(len(bodies[number]) for number in numbers)
    seconds = {name: sum(times.values()) for name, times in best.items()}
    return [
        {
            "dialect": dialect,
            "streams": f"{len(numbers)} of {len(bodies)}",
            "reader": name,
            "MB/s": round(size / spent / 1e6, 2),
            "events/s": round(events / spent),
            "us/event": round(spent / events * 1e6, 1),
            "times": round(seconds["sdk"] / spent, 1),
        }
        for name, spent in seconds.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not CASES.is_dir():
        raise SystemExit(f"no corpus at {CASES}: set CLAW_SHARED")
    if args.serve:
        serve()
        return
    warnings.simplefilter("ignore")  # the SDKs' models warn of what servers really send
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        report = [
            row
            for dialect, bodies in streams().items()
            for row in measure(dialect, bodies, port, args.rounds)
        ]
        server.communicate()
    if args.json:
        print(json.dumps(report, indent=1))
        return
    columns = list(report[0])
    print("| " + " | ".join(columns) + " |")
    print("|" + " --- |" * len(columns))
    for row in report:
        print("| " + " | ".join(str(row[column]) for column in columns) + " |")


if __name__ == "__main__":
    main()
