"""The server over plain sockets and `http.client`, and read by the vendors' own SDKs."""

from __future__ import annotations

import asyncio
import http.client
import json
from typing import Any

import pytest

from claw.errors import AuthenticationFailed, ContextOverflow, ModelUnavailable
from claw.models.scripted import Gate, ScriptedModel, calls, cut, fails, raw, refuses, says, waits
from claw.testing.conformance import a_request
from claw.testing.strict_server import Received, StrictServer, answers, sent
from claw.types.events import TextDelta
from claw.types.messages import Opaque, RedactedThinking, Text, Thinking, ToolUse
from claw.types.reply import Reply
from claw.types.usage import Usage

ANTHROPIC_HEADERS = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
MESSAGES = "/v1/messages"
CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"


def body_of(path: str, *messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    asked = list(messages) or [{"role": "user", "content": "hi"}]
    if path == RESPONSES:
        return {"model": "m", "input": asked, **more}
    limit = {} if path == CHAT else {"max_tokens": 100}
    return {"model": "m", "messages": asked, **limit, **more}


async def post(
    server: StrictServer, path: str, body: Any, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """One exchange through `http.client`, in a thread."""

    def exchange() -> tuple[int, dict[str, str], bytes]:
        host = server.base_url.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=20)
        try:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            connection.request("POST", path, data, headers or ANTHROPIC_HEADERS)
            response = connection.getresponse()
            lower = {name.lower(): value for name, value in response.getheaders()}
            return response.status, lower, response.read()
        finally:
            connection.close()

    return await asyncio.to_thread(exchange)


def sse(data: bytes) -> list[Any]:
    lines = [line[6:] for line in data.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


class Raw:
    """A connection by hand: what travels, piece by piece."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @staticmethod
    async def to(server: StrictServer) -> Raw:
        host, _, port = server.base_url.removeprefix("http://").partition(":")
        return Raw(*await asyncio.open_connection(host, int(port)))

    def ask(self, path: str, body: dict[str, Any], *, chunked: bool = False) -> None:
        data = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAnthropic-Version: 2023-06-01\r\n"
        if chunked:
            half = len(data) // 2
            framed = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (data[:half], data[half:]))
            self.writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
            self.writer.write(framed + b"0\r\n\r\n")
        else:
            self.writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)

    async def head(self) -> str:
        return (await self.reader.readuntil(b"\r\n\r\n")).decode()

    async def chunks(self) -> list[bytes]:
        """Up to the end of the body. Raises `IncompleteReadError` where there is none."""
        found: list[bytes] = []
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            found.append(await self.reader.readexactly(size))
            await self.reader.readexactly(2)
        await self.reader.readexactly(2)
        return found

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


async def test_a_kept_connection_serves_every_dialect_and_chunked_requests():
    async with StrictServer([says("one"), says("two"), says("three"), says("four")]) as server:
        peer = await Raw.to(server)
        for path in (MESSAGES, CHAT, RESPONSES, MESSAGES):
            peer.ask(path, body_of(path, stream=True), chunked=path == CHAT)
            assert "200 OK" in await peer.head()
            assert await peer.chunks()
        await peer.close()
    assert [r.path for r in server.requests] == [MESSAGES, CHAT, RESPONSES, MESSAGES]
    assert server.requests[0].headers["anthropic-version"] == "2023-06-01"
    assert server.requests[1].body["messages"] == [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize("path", [MESSAGES, CHAT, RESPONSES])
async def test_every_chunking_carries_the_same_bytes(path):
    text = "a text, 世界, of some length"

    async def streamed(**how: Any) -> list[bytes]:
        async with StrictServer([sent(calls(("Read", {"ü": 1}), text=text), **how)]) as server:
            peer = await Raw.to(server)
            peer.ask(path, body_of(path, stream=True))
            await peer.head()
            pieces = await peer.chunks()
            await peer.close()
        return pieces

    whole = b"".join(await streamed())
    assert {len(piece) for piece in await streamed(every=1)} == {1}
    assert b"".join(await streamed(every=1)) == whole
    assert [len(piece) for piece in await streamed(at=[10, 15, 10**6])] == [10, 5, len(whole) - 15]
    for seed in range(5):
        assert b"".join(await streamed(seed=seed)) == whole
    assert await streamed(seed=3) == await streamed(seed=3) != await streamed(seed=4)
    assert len(await streamed(every=100, pause=0.001)) == -(-len(whole) // 100)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_connection_is_cut_at_a_byte(stream):
    async with StrictServer([sent(says("x" * 200), cut_at=50)]) as server:
        with pytest.raises(http.client.IncompleteRead) as caught:
            await post(server, MESSAGES, body_of(MESSAGES, stream=stream))
    assert len(caught.value.partial) == 50


@pytest.mark.parametrize("path", [MESSAGES, CHAT, RESPONSES])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_cut_reply_has_no_end(path, stream):
    async with StrictServer([cut("half an answer"), raw()]) as server:
        with pytest.raises(http.client.IncompleteRead) as half:
            await post(server, path, body_of(path, stream=stream))
        with pytest.raises(http.client.IncompleteRead) as nothing:
            await post(server, path, body_of(path, stream=stream))
    assert b"half" in half.value.partial or not stream
    assert nothing.value.partial == b""


async def test_errors_have_the_providers_shapes():
    overloaded = ModelUnavailable("busy", status=529, retry_after=2.5)
    async with StrictServer(
        [fails(overloaded), fails(AuthenticationFailed("no")), fails(overloaded)]
    ) as server:
        status, headers, data = await post(server, MESSAGES, body_of(MESSAGES))
        assert (status, headers["retry-after"]) == (529, "2.5")
        assert json.loads(data)["error"] == {"type": "overloaded_error", "message": "busy"}
        status, _, data = await post(server, MESSAGES, body_of(MESSAGES))
        assert (status, json.loads(data)["error"]["type"]) == (401, "authentication_error")
        status, _, data = await post(server, CHAT, body_of(CHAT))
        assert (status, json.loads(data)["error"]["message"]) == (529, "busy")


async def test_an_error_inside_a_stream():
    error = fails(ModelUnavailable("busy"), after="half")
    async with StrictServer([error, error, error]) as server:
        for path in (MESSAGES, CHAT, RESPONSES):
            status, _, data = await post(server, path, body_of(path, stream=True))
            assert status == 200
            assert "half" in data.decode()
            assert sse(data)[-1]["error"]["message"] == "busy"
            assert b"[DONE]" not in data


async def test_any_answer_at_all():
    async with StrictServer(
        [
            answers(502, "<html>Bad Gateway", {"content-type": "text/html", "x-a": "b"}),
            answers(200, b"\x00\xff"),
            sent(answers(429, {"error": "slow down"}, {"retry-after": "0"}), every=3),
        ]
    ) as server:
        status, headers, data = await post(server, CHAT, body_of(CHAT))
        assert (status, headers["x-a"], data) == (502, "b", b"<html>Bad Gateway")
        assert (await post(server, CHAT, body_of(CHAT)))[2] == b"\x00\xff"
        status, headers, data = await post(server, CHAT, body_of(CHAT))
        assert (status, headers["retry-after"]) == (429, "0")
        assert json.loads(data) == {"error": "slow down"}


async def test_a_function_answers_from_the_request():
    def echo(received: Received) -> Reply:
        return says(received.body["messages"][-1]["content"] + "!")

    async with StrictServer([echo]) as server:
        _, _, data = await post(server, MESSAGES, body_of(MESSAGES))
    assert json.loads(data)["content"] == [{"type": "text", "text": "hi!"}]


async def test_a_client_that_leaves_at_a_gate_is_noticed():
    gate = Gate()
    async with StrictServer([waits(gate, "a text that is long enough", after=1)]) as server:
        peer = await Raw.to(server)
        peer.ask(MESSAGES, body_of(MESSAGES, stream=True))
        await gate.reached()
        assert b"a text that " in await peer.reader.read(10**6)
        await peer.close()
        async with asyncio.timeout(20):
            while not server.requests[0].disconnected:  # noqa: ASYNC110
                await asyncio.sleep(0.001)


async def test_a_gate_opens():
    gate = Gate()
    async with StrictServer([waits(gate, "text", after=0)]) as server:
        asking = asyncio.create_task(post(server, CHAT, body_of(CHAT, stream=True)))
        await gate.reached()
        gate.open()
        assert sse((await asking)[2])[-1]["choices"][0]["finish_reason"] == "stop"


async def test_a_server_can_be_left_while_a_client_waits():
    gate = Gate()
    async with StrictServer([waits(gate, "text")]) as server:
        peer = await Raw.to(server)
        peer.ask(CHAT, body_of(CHAT, stream=True))
        await gate.reached()
    await peer.close()


@pytest.mark.parametrize(
    ("path", "max_tokens", "message"),
    [
        (MESSAGES, 10, "prompt is too long: {n} tokens > 100 maximum"),
        (CHAT, 10, "maximum context length is 100 tokens. However, your messages resulted in {n}"),
    ],
)
async def test_a_window_overflows_in_the_dialects_words(path, max_tokens, message):
    long = body_of(path, {"role": "user", "content": "word " * 200}, max_tokens=max_tokens)
    async with StrictServer([says("fits")], window=100) as server:
        status, _, data = await post(server, path, long)
        n = -(-len(json.dumps(long)) // 4)
        assert status == 400
        assert message.format(n=n) in json.loads(data)["error"]["message"]
        high = body_of(path, max_tokens=95)
        status, _, data = await post(server, path, high)
        assert status == 400
        assert "reduce" in data.decode() or "`max_tokens` exceed context limit" in data.decode()
        assert (await post(server, path, body_of(path, max_tokens=10)))[0] == 200
    assert server.violations == []


async def test_a_responses_window_counts_the_input_alone():
    long = body_of(RESPONSES, {"role": "user", "content": "word " * 200})
    async with StrictServer([says("fits")], window=100) as server:
        status, _, data = await post(server, RESPONSES, long)
        assert (status, json.loads(data)["error"]["code"]) == (400, "context_length_exceeded")
        assert (await post(server, RESPONSES, body_of(RESPONSES, max_output_tokens=95)))[0] == 200
    assert server.violations == []


async def test_tokens_are_counted():
    async with StrictServer() as server:
        body = {"model": "m", "messages": [{"role": "user", "content": "x" * 400}]}
        _, _, data = await post(server, "/v1/messages/count_tokens", body)
    assert json.loads(data) == {"input_tokens": -(-len(json.dumps(body)) // 4)}


async def refused(
    body: Any, path: str = MESSAGES, headers: dict[str, str] | None = None
) -> tuple[str, str]:
    """The complaint in the answer, and what leaving the server says."""
    async with StrictServer(check=False) as server:
        status, _, data = await post(server, path, body, headers)
    assert status in (400, 404)
    with pytest.raises(AssertionError) as caught:
        server.assert_finished()
    return json.loads(data)["error"]["message"], str(caught.value)


async def test_a_violation_is_answered_and_fails_the_test():
    for path in (MESSAGES, CHAT):
        blank = body_of(path, {"role": "user", "content": " "})
        answer, failure = await refused(blank, path)
        assert "messages.0.content: empty or blank" in answer
        assert "request 1: messages.0.content: empty or blank" in failure


async def test_other_violations():
    assert "not JSON" in (await refused(b"{"))[1]
    assert "anthropic-version" in (await refused(body_of(MESSAGES), headers={"a": "b"}))[1]
    assert "/v2 is not served" in (await refused({}, "/v2"))[1]
    assert "unexpected request 1" in (await refused(body_of(MESSAGES)))[1]


async def test_unused_replies_fail_the_test_but_hide_no_other_error():
    with pytest.raises(AssertionError, match="2 of 2 replies were never asked for"):
        async with StrictServer([says("a"), says("b")]):
            pass
    with pytest.raises(KeyError):
        async with StrictServer([says("a")]):
            raise KeyError
    async with StrictServer([says("a")], check=False) as server:
        await post(server, MESSAGES, b"no")
    assert server.unused == 1
    assert server.violations


async def test_what_is_no_http_is_a_violation():
    async with StrictServer(check=False) as server:
        peer = await Raw.to(server)
        peer.writer.write(b"hello\r\n\r\n")
        assert await peer.reader.read() == b""
        await peer.close()
    assert "not an HTTP request" in server.violations[0]


async def test_thinking_must_come_back_as_it_was_sent():
    ask = {"role": "user", "content": "hi"}
    reply = Reply((Thinking("hm", "c2ln"), RedactedThinking("cmVk"), Text("x")), "end_turn")
    async with StrictServer([reply, says("ok")], check=False) as server:
        _, _, data = await post(server, MESSAGES, body_of(MESSAGES, ask))
        back = {"role": "assistant", "content": json.loads(data)["content"]}
        assert (await post(server, MESSAGES, body_of(MESSAGES, ask, back, ask)))[0] == 200
        assert server.violations == []
        back["content"][0]["thinking"] = "hm!"
        assert (await post(server, MESSAGES, body_of(MESSAGES, ask, back, ask)))[0] == 400
    assert "not as it was sent" in server.violations[0]


async def test_reasoning_must_come_back_as_it_was_sent():
    ask = {"role": "user", "content": "hi"}
    known = Opaque("openai", {"type": "reasoning", "id": "r", "summary": [], **ENCRYPTED})
    reply = Reply((Thinking("hm", "c2ln"), RedactedThinking("cmVk"), known, Text("x")), "end_turn")
    async with StrictServer([reply, says("ok")], check=False) as server:
        _, _, data = await post(server, RESPONSES, body_of(RESPONSES, ask))
        back = json.loads(data)["output"]
        assert len(back) == 4
        again = body_of(RESPONSES, ask, *back, ask)
        assert (await post(server, RESPONSES, again))[0] == 200
        assert server.violations == []
        back[0]["encrypted_content"] = "c2lo"
        assert (await post(server, RESPONSES, again))[0] == 400
    assert "not as it was sent" in server.violations[0]


# --- the vendors' own clients as readers

ENCRYPTED = {"encrypted_content": "ZW5j"}

RICH = Reply(
    (
        Thinking("first this", "c2lnbmF0dXJl"),
        Text("I look at both. 世界"),
        ToolUse("toolu_1", "Read", {"file_path": 'a\n"ü"'}),
        ToolUse("toolu_2", "Read", {}),
    ),
    "tool_use",
    Usage(100, 20, cache_read_input_tokens=30, cache_creation_input_tokens=5),
)
ASK: list[Any] = [{"role": "user", "content": "hi"}]


async def test_the_anthropic_sdk_reads_a_rich_reply_streamed_and_whole():
    anthropic = pytest.importorskip("anthropic")
    async with (
        StrictServer([sent(RICH, every=7), RICH]) as server,
        anthropic.AsyncAnthropic(api_key="k", base_url=server.base_url, max_retries=0) as client,
    ):
        async with client.messages.stream(model="m", max_tokens=50, messages=ASK) as stream:
            streamed = await stream.get_final_message()
        whole = await client.messages.create(model="m", max_tokens=50, messages=ASK)
    for message in (streamed, whole):
        thought, text, one, two = message.content
        assert (thought.thinking, thought.signature) == ("first this", "c2lnbmF0dXJl")
        assert text.text == "I look at both. 世界"
        assert (one.id, one.name, one.input) == ("toolu_1", "Read", {"file_path": 'a\n"ü"'})
        assert (two.id, two.input) == ("toolu_2", {})
        assert message.stop_reason == "tool_use"
        usage = message.usage
        assert (usage.input_tokens, usage.output_tokens) == (100, 20)
        assert (usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (30, 5)


async def test_the_anthropic_sdk_meets_a_cut_an_overload_and_server_tools():
    anthropic = pytest.importorskip("anthropic")
    tool = Opaque(
        "anthropic",
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
    )
    async with (
        StrictServer(
            [
                cut("an answer that dies", after=1),
                fails(ModelUnavailable("busy")),
                fails(ModelUnavailable("busy"), after="half"),
                Reply((tool, Text("found")), "pause_turn"),
                refuses("no"),
            ]
        ) as server,
        anthropic.AsyncAnthropic(api_key="k", base_url=server.base_url, max_retries=0) as client,
    ):

        async def texts() -> list[str]:
            async with client.messages.stream(model="m", max_tokens=50, messages=ASK) as stream:
                seen.extend([text async for text in stream.text_stream])
                final = await stream.get_final_message()
                return [final.stop_reason, *(block.type for block in final.content)]

        seen: list[str] = []
        with pytest.raises(Exception, match="incomplete chunked read"):
            await texts()
        with pytest.raises(anthropic.APIStatusError) as caught:
            await texts()
        assert caught.value.status_code == 529
        with pytest.raises(anthropic.APIStatusError, match="busy"):
            await texts()
        assert await texts() == ["pause_turn", "server_tool_use", "text"]
        assert await texts() == ["refusal", "text"]
        counted = await client.messages.count_tokens(model="m", messages=ASK)
        assert counted.input_tokens > 0


async def test_the_openai_sdk_reads_a_rich_reply_streamed_and_whole():
    openai = pytest.importorskip("openai")
    async with (
        StrictServer([sent(RICH, seed=1), RICH]) as server,
        openai.AsyncOpenAI(api_key="k", base_url=f"{server.base_url}/v1", max_retries=0) as client,
    ):
        async with client.chat.completions.stream(
            model="m", messages=ASK, stream_options={"include_usage": True}
        ) as stream:
            streamed = await stream.get_final_completion()
        whole = await client.chat.completions.create(model="m", messages=ASK)
    for completion in (streamed, whole):
        (choice,) = completion.choices
        assert choice.message.content == "I look at both. 世界"
        assert choice.finish_reason == "tool_calls"
        one, two = choice.message.tool_calls
        assert (one.id, one.function.name) == ("toolu_1", "Read")
        assert json.loads(one.function.arguments) == {"file_path": 'a\n"ü"'}
        assert (two.id, json.loads(two.function.arguments)) == ("toolu_2", {})
        usage = completion.usage
        assert (usage.prompt_tokens, usage.completion_tokens) == (135, 20)
        assert usage.prompt_tokens_details.cached_tokens == 30


async def test_the_openai_sdk_meets_a_cut_an_overload_and_an_overflow():
    openai = pytest.importorskip("openai")
    async with (
        StrictServer(
            [
                cut("an answer that dies", after=1),
                fails(ModelUnavailable("busy", status=529)),
                fails(ContextOverflow("too long")),
                raw(TextDelta("ends without a stop")),
            ]
        ) as server,
        openai.AsyncOpenAI(api_key="k", base_url=f"{server.base_url}/v1", max_retries=0) as client,
    ):

        async def read() -> str:
            stream = await client.chat.completions.create(model="m", messages=ASK, stream=True)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

        with pytest.raises(Exception, match=r"incomplete chunked read|Connection error"):
            await read()
        with pytest.raises(openai.APIStatusError) as busy:
            await read()
        assert busy.value.status_code == 529
        with pytest.raises(openai.BadRequestError) as overflow:
            await read()
        assert overflow.value.code == "context_length_exceeded"
        with pytest.raises(Exception, match=r"incomplete chunked read|Connection error"):
            await read()


async def test_the_openai_sdk_reads_a_rich_response_streamed_and_whole():
    openai = pytest.importorskip("openai")
    async with (
        StrictServer([sent(RICH, seed=2), RICH]) as server,
        openai.AsyncOpenAI(api_key="k", base_url=f"{server.base_url}/v1", max_retries=0) as client,
    ):
        async with client.responses.stream(model="m", input=ASK) as stream:
            streamed = await stream.get_final_response()
        whole = await client.responses.create(model="m", input=ASK)
    for response in (streamed, whole):
        thought, text, one, two = response.output
        assert (thought.summary[0].text, thought.encrypted_content) == (
            "first this",
            "c2lnbmF0dXJl",
        )
        assert response.output_text == "I look at both. 世界" == text.content[0].text
        assert (one.call_id, one.name) == ("toolu_1", "Read")
        assert json.loads(one.arguments) == {"file_path": 'a\n"ü"'}
        assert (two.call_id, json.loads(two.arguments)) == ("toolu_2", {})
        assert response.status == "completed"
        usage = response.usage
        assert (usage.input_tokens, usage.output_tokens) == (135, 20)
        assert usage.input_tokens_details.cached_tokens == 30


async def test_the_openai_sdk_meets_limits_server_tools_and_errors_of_responses():
    openai = pytest.importorskip("openai")
    search = {"type": "web_search_call", "id": "ws", "status": "completed", "action": {}}
    async with (
        StrictServer(
            [
                Reply((Opaque("openai", search), Text("found")), "end_turn"),
                says("cut off", stop_reason="max_tokens"),
                refuses("no"),
                cut("an answer that dies", after=1),
                fails(ModelUnavailable("busy"), after="half"),
                fails(ContextOverflow("too long")),
            ]
        ) as server,
        openai.AsyncOpenAI(api_key="k", base_url=f"{server.base_url}/v1", max_retries=0) as client,
    ):

        async def read() -> tuple[str, str, list[str]]:
            stream = await client.responses.create(model="m", input=ASK, stream=True)
            last = [event async for event in stream][-1].response
            reason = last.incomplete_details and last.incomplete_details.reason
            return last.status, reason or "", [item.type for item in last.output]

        assert await read() == ("completed", "", ["web_search_call", "message"])
        assert await read() == ("incomplete", "max_output_tokens", ["message"])
        assert await read() == ("incomplete", "content_filter", ["message"])
        with pytest.raises(Exception, match=r"incomplete chunked read|Connection error"):
            await read()
        with pytest.raises(openai.APIError, match="busy"):
            await read()
        with pytest.raises(openai.BadRequestError) as overflow:
            await read()
        assert overflow.value.code == "context_length_exceeded"


async def test_the_same_script_means_the_same_in_memory_and_on_the_wire():
    anthropic = pytest.importorskip("anthropic")
    model = ScriptedModel([RICH])
    events = [event async for event in model.stream(a_request())]
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["I look at bo", "th. 世界"]
    async with (
        StrictServer([RICH]) as server,
        anthropic.AsyncAnthropic(api_key="k", base_url=server.base_url, max_retries=0) as client,
        client.messages.stream(model="m", max_tokens=50, messages=ASK) as stream,
    ):
        assert [t async for t in stream.text_stream] == ["I look at bo", "th. 世界"]
