"""Errors of the network, its settings and its addresses left the client untranslated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.errors import ConfigError, ModelError, ModelUnavailable
from claw.models.address import is_loopback, parse_address
from claw.models.http import HttpRequest
from claw.models.registry import Profile, resolve
from claw.models.transport import HttpTransport

REFUSED = [
    "http://127.0.0.1:99999",
    "http://127.0.0.1:0",
    "http://127.0.0.1:x",
    "http://exa mple.com",
    "http://exam\nple.com",
    "http://",
    "http:///v1",
    "https://:443/v1",
    "ftp://example.org",
    "example.org",
    "http:/example.org",
    "http://a..b/",
    "http://[::1",
    "http://[zz]/",
    "http://[::1]x/",
    f"http://{'a' * 64}.org",
    "http://exa{mple}.org",
]
TAKEN = [
    ("https://example.org/v1?x=1", "example.org", "example.org"),
    ("HTTP://Example.org:8080", "example.org", "Example.org:8080"),
    ("http://me:secret@example.org/", "example.org", "example.org"),
    ("http://[::1]:11434/v1", "::1", "[::1]:11434"),
    ("http://local_host:1/", "local_host", "local_host:1"),
    ("http://bücher.example/", "bücher.example", "bücher.example"),
    ("http://example.org./", "example.org.", "example.org."),
]


@pytest.mark.parametrize(("url", "host", "place"), TAKEN)
def test_an_address(url: str, host: str, place: str) -> None:
    address = parse_address(url)
    assert (address.host, address.place) == (host, place)


@given(st.text(max_size=30), st.sampled_from(["", "http://", "https://", "http://[", "http://a:"]))
def test_any_text_is_an_address_or_is_refused(text: str, start: str) -> None:
    try:
        address = parse_address(start + text)
    except ValueError:  # nothing else may come out
        return
    assert address.host


@pytest.mark.parametrize("url", REFUSED)
def test_a_wrong_base_url_is_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(ConfigError, match="ANTHROPIC_BASE_URL") as raised:
        resolve("opus", env={"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k"})
    assert raised.value.hint
    profiles = {"mine": Profile("openai-chat", url)}
    with pytest.raises(ConfigError, match=r"providers\.mine\.baseUrl"):
        resolve("mine/x", env={}, profiles=profiles)


def test_a_login_in_a_refused_url_is_not_shown() -> None:
    with pytest.raises(ConfigError) as raised:
        resolve("opus", env={"ANTHROPIC_BASE_URL": "http://me:secret@:1", "ANTHROPIC_API_KEY": "k"})
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("key", ["", "  ", "\t\n", "\u00a0"])
def test_a_blank_key_is_none(key: str) -> None:
    env = {"ANTHROPIC_API_KEY": key, "MY_KEY": key}
    assert resolve(None, env=env).kind == "offline"
    with pytest.raises(ConfigError, match="no credentials"):
        resolve("opus", env=env)
    profiles = {"mine": Profile("openai-chat", "https://example.org", "MY_KEY")}
    with pytest.raises(ConfigError, match="no credentials"):
        resolve("mine/x", env=env, profiles=profiles)


def test_a_name_that_only_begins_like_this_machine_is_another() -> None:
    assert is_loopback("127.0.0.1")
    assert not is_loopback("127.example.org")


async def failing(url: str, headers: dict[str, str] | None = None) -> ModelError:
    transport = HttpTransport()
    try:
        with pytest.raises(ModelError) as raised:
            await transport.send(HttpRequest(url, headers or {}, b"{}"))
        return raised.value
    finally:
        await transport.aclose()


@pytest.mark.parametrize("url", REFUSED)
async def test_the_transport_refuses_it_too(url: str) -> None:
    assert not isinstance(await failing(url), ModelUnavailable)


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
@pytest.mark.parametrize("value", ["/nonexistent", "/etc/passwd"])
async def test_certificates_that_cannot_be_loaded(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    error = await failing("https://127.0.0.1:1/")
    if variable == "SSL_CERT_FILE":  # a missing folder counts as an empty one
        assert variable in error.hint
        assert not isinstance(error, ModelUnavailable)


@pytest.mark.parametrize("proxy", ["foo://127.0.0.1:9", "http://127.0.0.1:99999", "http://[::"])
async def test_a_proxy_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    monkeypatch.delenv("NO_PROXY", raising=False)
    error = await failing("http://model.invalid/")
    assert "HTTP_PROXY" in error.hint
    assert not isinstance(error, ModelUnavailable)


async def test_nobody_at_the_address_has_a_hint() -> None:
    assert "running" in (await failing("http://127.0.0.1:1/")).hint
    assert "running" in (await failing("http://[::1]:1/")).hint
    assert "base URL" in (await failing("http://0.0.0.0:1/")).hint


async def test_a_header_that_cannot_be_encoded_is_not_shown() -> None:
    error = await failing("http://127.0.0.1:1/", {"x-key": "secret-\ud800"})
    assert "header" in error.message
    assert error.__cause__ is None
