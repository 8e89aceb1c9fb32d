"""A key is not sent without encryption, except within one's own network."""

from __future__ import annotations

import pytest

from claw.errors import ConfigError
from claw.models.registry import Profile, resolve

FAR = [
    *("http://api.example.com", "HTTP://api.example.com./v1", "http://8.8.8.8", "http://[2606::1]"),
    *("http://127.0.0.1.example.com", "http://local.example.com", "http://0177.8.8.8"),
]
NEAR = [
    *("http://127.0.0.1:9", "http://localhost:9", "http://[::1]:9", "http://10.0.0.7:8080"),
    *("http://192.168.1.5/v1", "http://172.16.0.1", "http://[fd00::1]", "http://box.local"),
    *("http://gpu.lan:8000", "http://models.internal", "http://ollama:11434", "https://e.com"),
]


def with_url(url: str) -> dict[str, str]:
    return {"OPENAI_API_KEY": "sk-secret", "OPENAI_BASE_URL": url}


@pytest.mark.parametrize("url", FAR)
def test_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve("openai/m", env=with_url(url))
    assert "in the clear" in caught.value.message
    assert "https://" in (caught.value.hint or "")
    assert "127.0.0.1" in (caught.value.hint or "")
    for profile in (
        Profile("openai-chat", url, api_key_env="OPENAI_API_KEY"),
        Profile("openai-chat", url, headers={"Authorization": "Bearer x"}),
    ):
        with pytest.raises(ConfigError):
            resolve("mine", env=with_url(""), profiles={"mine": profile})


@pytest.mark.parametrize("url", NEAR)
def test_accepted(url: str) -> None:
    assert resolve("openai/m", env=with_url(url)).base_url == url


def test_a_server_that_gets_no_key() -> None:
    profile = Profile("openai-chat", "http://api.example.com", headers={"X-Team": "a"})
    assert resolve("mine", env={}, profiles={"mine": profile}).key == ""
