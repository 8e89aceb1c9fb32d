"""Through a proxy and with a certificate authority of one's own, as the command is run."""

from __future__ import annotations

import asyncio
import base64
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from claw.errors import ModelError, ModelUnavailable
from claw.models.http import HttpRequest, Timeouts
from claw.models.transport import HttpTransport
from claw.testing import ServerReply, StrictServer, says
from tests.cli.running import Ended, Workplace

HOST = "model.test"  # a name that nobody but the proxy knows
KEY = "sk-the-key-of-this-test"
USER, PASSWORD = "me", "pa55:word-of-this-test/?"
LOGIN = "me:pa55%3Aword-of-this-test%2F%3F@"

Tunnel = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


# --- what stands between


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray) -> None:
    with suppress(ConnectionError, ssl.SSLError):
        while data := await reader.read(65536):
            kept += data
            writer.write(data)
            await writer.drain()
    with suppress(ConnectionError, ssl.SSLError):
        writer.close()


async def joined(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, kept: bytearray
) -> None:
    """Both directions between a connection and a port of this machine."""
    there, back = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.gather(pump(reader, back, kept), pump(there, writer, bytearray()))


class Proxy:
    """Joins every ``CONNECT`` with one port, or gives ``answer``.

    ``heads`` are the requests to itself, ``passed`` all that went through it to the server.
    """

    def __init__(self, to: int, answer: bytes) -> None:
        self.heads: list[bytes] = []
        self.passed = bytearray()
        self._to = to
        self._answer = answer
        self._server: asyncio.Server | None = None

    @property
    def place(self) -> str:
        assert self._server is not None
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            self.heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(self._answer)
            if b" 200 " in self._answer:
                await joined(reader, writer, self._to, self.passed)
            await writer.drain()
        writer.close()


ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


def refuses(status: str, more: str = "") -> bytes:
    body = "<html>No.</html>"
    return f"HTTP/1.1 {status}\r\n{more}Content-Length: {len(body)}\r\n\r\n{body}".encode()


class Certificates:
    """An authority, ``authority``, and a certificate of it for HOST and this machine."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("openssl")
        if program is None:
            pytest.skip("there is no `openssl` to make certificates with")
        self.authority = folder / "authority.pem"
        self._program, self._folder = program, folder
        common = ("-newkey", "rsa:2048", "-nodes", "-days", "2")
        ca = ("-addext", "basicConstraints=critical,CA:TRUE")
        self._run("req", "-x509", *common, *ca, "-subj", "/CN=A test's authority")
        self._run("req", *common, "-subj", f"/CN={HOST}", keep="server", out="request.pem")
        names = folder / "names"
        names.write_text(f"subjectAltName=DNS:{HOST},DNS:localhost,IP:127.0.0.1\n")
        signed = ("-CA", str(self.authority), "-CAkey", str(folder / "authority.key"))
        self._run(
            *("x509", "-req", "-in", str(folder / "request.pem"), *signed, "-days", "2"),
            *("-extfile", str(names)),
            keep="",
            out="server.pem",
        )

    def directory(self) -> Path:
        """The authority as OpenSSL looks for it in a directory: by its hash."""
        found = self._run("x509", "-in", str(self.authority), "-hash", "-noout", keep="", out="")
        folder = self._folder / "trusted"
        folder.mkdir()
        shutil.copy(self.authority, folder / f"{found.decode().strip()}.0")
        return folder

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / "server.pem", self._folder / "server.key")
        return context

    def _run(self, *words: str, keep: str = "authority", out: str = "authority.pem") -> bytes:
        made = ("-out", str(self._folder / out)) if out else ()
        key = ("-keyout", str(self._folder / f"{keep}.key")) if keep else ()
        command = [self._program, *words, *key, *made]
        return subprocess.run(command, check=True, capture_output=True, timeout=60).stdout


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@asynccontextmanager
async def a_network(
    certificates: Certificates,
    replies: list[ServerReply],
    *,
    answer: bytes = ESTABLISHED,
) -> AsyncIterator[tuple[Proxy, StrictServer, int]]:
    """A proxy, a model server behind it, and the port where that speaks TLS."""
    async with StrictServer(replies) as server:
        plain = int(server.base_url.rpartition(":")[2])

        async def unwrap(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await joined(reader, writer, plain, bytearray())

        tls = await asyncio.start_server(unwrap, "127.0.0.1", 0, ssl=certificates.context())
        port = tls.sockets[0].getsockname()[1]
        async with tls, Proxy(port, answer) as proxy:
            yield proxy, server, port


async def ask(place: Workplace, *flags: str, **env: str) -> Ended:
    known = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": f"https://{HOST}"}
    return await place.run("-p", "x", "--model", "haiku", *flags, env=known | env)


def everything_kept(place: Workplace) -> bytes:
    """All that the command wrote to disk."""
    return b"".join(path.read_bytes() for path in place.home.rglob("*") if path.is_file())


# --- it works


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"])
async def test_the_command_goes_through_the_proxy(
    place: Workplace, certificates: Certificates, variable: str
):
    async with a_network(certificates, [says("hello")]) as (proxy, server, _):
        env = {variable: f"http://{proxy.place}", "SSL_CERT_FILE": str(certificates.authority)}
        ended = await ask(place, **env)
    assert (ended.code, ended.out) == (0, "hello\n"), ended.err
    assert proxy.heads[0].startswith(f"CONNECT {HOST}:443 HTTP/1.1\r\n".encode())
    assert server.requests[0].headers["x-api-key"] == KEY
    assert KEY.encode() not in b"".join(proxy.heads) + proxy.passed
    assert b"/v1/messages" not in proxy.passed


async def test_a_proxy_may_be_named_without_a_scheme(place: Workplace, certificates: Certificates):
    async with a_network(certificates, [says("hello")]) as (proxy, _, _):
        trust = {"SSL_CERT_DIR": str(certificates.directory())}
        ended = await ask(place, HTTPS_PROXY=proxy.place, **trust)
    assert (ended.code, ended.out) == (0, "hello\n"), ended.err


async def test_its_login_is_sent_to_the_proxy_and_shown_nowhere(
    place: Workplace, certificates: Certificates
):
    async with a_network(certificates, [says("hello")]) as (proxy, server, _):
        ended = await ask(
            place,
            "--debug",
            HTTPS_PROXY=f"http://{LOGIN}{proxy.place}",
            SSL_CERT_FILE=str(certificates.authority),
            CLAW_LOG="debug",
        )
        sent = {name for request in server.requests for name in request.headers}
    assert (ended.code, ended.out) == (0, "hello\n"), ended.err
    expected = base64.b64encode(f"{USER}:{PASSWORD}".encode())
    assert b"proxy-authorization: basic " + expected.lower() in proxy.heads[0].lower()
    assert "proxy-authorization" not in sent
    seen = (ended.out + ended.err).encode() + everything_kept(place)
    assert PASSWORD.encode() not in seen
    assert LOGIN.encode() not in seen
    assert expected not in seen


# --- it does not


@pytest.mark.parametrize("trust", [{}, {"SSL_CERT_DIR": "/no/such/place"}], ids=["", "nowhere"])
async def test_an_authority_that_nobody_trusts(
    place: Workplace, certificates: Certificates, trust: dict[str, str]
):
    async with a_network(certificates, []) as (proxy, _, _):
        ended = await ask(place, HTTPS_PROXY=f"http://{proxy.place}", **trust)
    assert (ended.code, ended.out) == (1, "")
    assert "certificate" in ended.err
    assert "hint: Set SSL_CERT_FILE" in ended.err
    assert len(proxy.heads) == 1  # not worth a retry
    assert KEY.encode() not in proxy.passed


async def test_trust_that_cannot_be_read(place: Workplace):
    ended = await ask(place, SSL_CERT_FILE="/no/such/place")
    assert (ended.code, ended.out) == (1, "")
    assert "hint: Correct or unset `SSL_CERT_FILE`" in ended.err


@pytest.mark.parametrize("login", ["", LOGIN])
async def test_a_proxy_that_wants_a_login(place: Workplace, certificates: Certificates, login: str):
    answer = refuses("407 Proxy Authentication Required", 'Proxy-Authenticate: Basic realm="x"\r\n')
    async with a_network(certificates, [], answer=answer) as (proxy, _, _):
        trust = {"SSL_CERT_FILE": str(certificates.authority)}
        ended = await ask(
            place, "--debug", HTTPS_PROXY=f"http://{login}{proxy.place}", CLAW_LOG="debug", **trust
        )
    assert (ended.code, ended.out) == (1, "")
    assert "407" in ended.err
    assert "HTTPS_PROXY" in ended.err
    assert len(proxy.heads) == 1
    assert PASSWORD not in ended.err
    assert LOGIN not in ended.err
    assert PASSWORD.encode() not in everything_kept(place)


async def test_a_proxy_that_is_out_of_order(certificates: Certificates, monkeypatch):
    """Worth a retry, and told apart from a server that is."""
    answer = refuses("503 Service Unavailable")
    async with a_network(certificates, [], answer=answer) as (proxy, _, _):
        monkeypatch.setenv("HTTPS_PROXY", f"http://{LOGIN}{proxy.place}")
        with pytest.raises(ModelUnavailable) as raised:
            await send(f"https://{HOST}/v1/messages")
    assert "proxy" in raised.value.message
    assert "503" in raised.value.message
    assert PASSWORD[:4] not in raised.value.message


async def test_a_proxy_that_is_not_there(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", f"http://{LOGIN}127.0.0.1:1")
    with pytest.raises(ModelUnavailable) as raised:
        await send(f"https://{HOST}/v1/messages")
    assert PASSWORD[:4] not in str(raised.value) + raised.value.hint
    assert "HTTPS_PROXY" in raised.value.hint


@pytest.mark.parametrize(
    "proxy",
    [
        "http://me:pa55/w0rd@proxy.test:1",  # a slash that should be %2F
        "http://me:pa55#w0rd@proxy.test:1",
        "http://me:pa55@w0rd@proxy.test:x",
        "http://me:pa55w0rd@[::",
        "gopher://me:pa55w0rd@proxy.test",
        "socks5://me:pa55w0rd@proxy.test",
        "://me:pa55w0rd@",
        "http://me:pa55w0rd@proxy.test:99999999999",
        "http://me:pa55w0rd@",
        "http://me:\x01pa55w0rd@proxy.test",
    ],
)
async def test_a_proxy_that_makes_no_sense(proxy: str, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(ModelError) as raised:
        await send(f"https://{HOST}/v1/messages")
    assert "PROXY" in raised.value.hint
    for shown in (raised.value.message, raised.value.hint):
        assert "pa55" not in shown
        assert "w0rd" not in shown


# --- what does not go through it


async def send(url: str) -> None:
    transport = HttpTransport(Timeouts(connect=0.3, first_byte=5.0))
    try:
        response = await transport.send(HttpRequest(url, {"x-api-key": KEY}, b"{}"))
        await response.close()
    finally:
        await transport.aclose()


@pytest.mark.parametrize(
    ("no_proxy", "url", "direct"),
    [
        ("*", f"https://{HOST}", True),
        (HOST, f"https://{HOST}", True),
        (HOST.upper(), f"https://{HOST}", True),
        ("other.test, model.test ,third.test", f"https://{HOST}", True),
        (".test", f"https://{HOST}", True),
        ("test", f"https://{HOST}", True),
        ("del.test", f"https://{HOST}", False),
        ("other.test", f"https://{HOST}", False),
        (f"{HOST}:8443", f"https://{HOST}:8443", True),
        (f"{HOST}:8443", f"https://{HOST}", False),
        ("192.0.2.1", "https://192.0.2.1", True),
        ("192.0.2.0/24", "https://192.0.2.1", True),
        ("192.0.2.0/30", "https://192.0.2.9", False),
        ("2001:db8::/32", "https://[2001:db8::1]", True),
        ("[::", f"https://{HOST}", False),
        ("", f"https://{HOST}", False),
    ],
)
@pytest.mark.parametrize("variable", ["NO_PROXY", "no_proxy"])
async def test_what_no_proxy_names_is_reached_directly(
    variable: str, no_proxy: str, url: str, direct: bool, monkeypatch
):
    """Whether the proxy is asked: what is reached without it is not there at all."""
    async with Proxy(0, refuses("503 No")) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy.place}")
        monkeypatch.setenv(variable, no_proxy)
        with pytest.raises(ModelError):
            await send(url)
    assert (proxy.heads == []) is direct


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
async def test_this_machine_is_reached_directly_with_tls_too(
    place: Workplace, certificates: Certificates, name: str
):
    """A proxy's loopback is another machine."""
    async with a_network(certificates, [says("hello")], answer=refuses("503 No")) as network:
        proxy, _, port = network
        ended = await ask(
            place,
            HTTPS_PROXY=f"http://{proxy.place}",
            SSL_CERT_FILE=str(certificates.authority),
            ANTHROPIC_BASE_URL=f"https://{name}:{port}",
        )
    assert (ended.code, ended.out) == (0, "hello\n"), ended.err
    assert proxy.heads == []
