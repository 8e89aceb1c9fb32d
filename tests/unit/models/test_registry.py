from __future__ import annotations

import pytest

from claw.errors import ConfigError
from claw.models.anthropic.client import AnthropicClient
from claw.models.catalog import canonical, lookup
from claw.models.openai_chat.client import OpenAIChatClient
from claw.models.openai_responses.client import OpenAIResponsesClient
from claw.models.registry import PROVIDERS, Profile, build, resolve
from claw.types.usage import Usage

LOCAL = "http://127.0.0.1:9"
KEY = {"ANTHROPIC_API_KEY": "sk-secret"}
PLACES = {"AWS_REGION": "us-west-2", "AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com/"}
ALL_KEYS = PLACES | {variable: "k" for p in PROVIDERS for variable in p.key_env}


def test_nothing_configured_is_the_offline_model():
    choice = resolve(None, env={})
    assert (choice.kind, choice.named) == ("offline", False)
    assert resolve("offline", env=KEY).named


def test_a_key_without_a_model_takes_the_first_provider_in_order():
    both = resolve(None, env={**KEY, "OPENAI_API_KEY": "k"})
    assert (both.provider, both.named) == ("anthropic", False)
    assert resolve("", env={"OPENAI_API_KEY": "k"}).provider == "openai"
    assert resolve(None, env={"GROQ_API_KEY": "k", "XAI_API_KEY": "k"}).provider == "groq"
    assert resolve(None, env={"ANTHROPIC_API_KEY": "  "}).kind == "offline"


def test_aliases_and_the_catalogue():
    choice = resolve("opus", env=KEY)
    assert choice.model.startswith("claude-opus-")
    assert choice.window
    assert choice.max_output
    assert choice.base_url == "https://api.anthropic.com"


def test_key_and_bearer_token():
    assert (resolve("opus", env=KEY).key, resolve("opus", env=KEY).bearer) == ("sk-secret", False)
    token = resolve("opus", env={"ANTHROPIC_AUTH_TOKEN": " t "})
    assert (token.key, token.bearer) == ("t", True)


def test_keys_never_show():
    profile = Profile("openai-chat", LOCAL, headers={"x-token": "hidden"})
    assert "sk-secret" not in repr(resolve("opus", env=KEY))
    assert "hidden" not in repr(resolve("mine", env={}, profiles={"mine": profile}))


@pytest.mark.parametrize(
    ("name", "provider", "model"),
    [
        ("claude-opus-4-5-20251101", "anthropic", "claude-opus-4-5-20251101"),
        ("gpt-5", "openai", "gpt-5"),
        ("o3", "openai", "o3"),
        ("deepseek-chat", "deepseek", "deepseek-chat"),
        ("openrouter/anthropic/claude-haiku-4.5", "openrouter", "anthropic/claude-haiku-4.5"),
        ("groq/anything-at-all", "groq", "anything-at-all"),
        ("claude-opus-7-20280101", "anthropic", "claude-opus-7-20280101"),
        ("gpt-9-sol", "openai", "gpt-9-sol"),
        ("anthropic/claude-neptune-1", "anthropic", "claude-neptune-1"),
        ("glm-5.1", "zai", "glm-5.1"),
        ("azure/my deployment", "azure", "my deployment"),
        ("ollama/qwen3:8b", "ollama", "qwen3:8b"),
    ],
)
def test_names_find_their_provider(name, provider, model):
    choice = resolve(name, env=ALL_KEYS)
    assert (choice.provider, choice.model) == (provider, model)


def test_asked_for_without_credentials():
    with pytest.raises(ConfigError) as raised:
        resolve("opus", env={})
    assert "ANTHROPIC_API_KEY" in raised.value.hint
    with pytest.raises(ConfigError):
        resolve("openai/gpt-5", env=KEY)


def test_a_server_of_this_machine_needs_no_key():
    assert resolve("fake-model", env={"ANTHROPIC_BASE_URL": LOCAL}).kind == "anthropic"
    assert resolve("fake-model", env={"OPENAI_BASE_URL": LOCAL}).kind == "openai-chat"
    assert resolve(None, env={"OPENAI_BASE_URL": LOCAL}).provider == "openai"
    with pytest.raises(ConfigError):
        resolve("fake-model", env={"ANTHROPIC_BASE_URL": "https://example.com"})


def test_two_base_urls():
    env = {"ANTHROPIC_BASE_URL": LOCAL, "OPENAI_BASE_URL": LOCAL}
    assert resolve("fake-model", env=env).provider == "anthropic"
    assert resolve("fake-model", env={**env, "OPENAI_API_KEY": "k"}).provider == "openai"
    assert resolve("gpt-5", env=env).provider == "openai"
    assert resolve("claude-x", env={"OPENAI_BASE_URL": LOCAL}).provider == "openai"


def test_unknown_names_are_refused_with_the_nearest():
    for name, near in (("claude-sonet", "`claude-sonnet-5`"), ("gpt-5-minni", "`gpt-5-mini`")):
        for env in ({}, ALL_KEYS):
            with pytest.raises(ConfigError, match="unknown model") as raised:
                resolve(name, env=env)
            assert near in raised.value.hint
    with pytest.raises(ConfigError) as raised:
        resolve("sonet", env=KEY)
    assert "`sonnet`" in raised.value.hint
    with pytest.raises(ConfigError):
        resolve("groq/", env={"GROQ_API_KEY": "k"})


def test_every_provider_is_reached_at_an_address_of_its_own():
    for provider in PROVIDERS:
        choice = resolve(f"{provider.name}/m", env=ALL_KEYS)
        assert choice.base_url.startswith(("https://", "http://127.0.0.1:"))
        assert choice.kind in (provider.dialect, provider.reasoning)
        assert (choice.provider, choice.model) == (provider.name, "m")
        assert choice.key == ("k" if provider.key_env else "")
        build(choice)
    assert resolve("azure/m", env=ALL_KEYS).base_url == "https://mine.openai.azure.com/openai/v1"
    assert "us-west-2" in resolve("bedrock/m", env=ALL_KEYS).base_url


def test_an_endpoint_may_have_its_path_already():
    env = {"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "https://a.example/openai/v1/"}
    assert resolve("azure/m", env=env).base_url == "https://a.example/openai/v1"


@pytest.mark.parametrize("name", ["azure", "bedrock"])
def test_a_place_that_is_not_known(name):
    env = {"AZURE_OPENAI_API_KEY": "k", "AWS_BEARER_TOKEN_BEDROCK": "k"}
    with pytest.raises(ConfigError) as raised:
        resolve(f"{name}/m", env=env)
    assert {"azure": "AZURE_OPENAI_ENDPOINT", "bedrock": "AWS_REGION"}[name] in raised.value.hint
    assert resolve(None, env=env).kind == "offline"


@pytest.mark.parametrize("variable", ["HF_TOKEN", "AZURE_OPENAI_API_KEY", "LITELLM_API_KEY"])
def test_a_key_alone_does_not_choose_a_provider_without_a_default(variable):
    assert resolve(None, env=PLACES | {variable: "k"}).kind == "offline"
    assert resolve(None, env=ALL_KEYS).provider == "anthropic"


def test_a_server_of_this_machine_is_used_only_by_name():
    assert resolve("lmstudio/gpt-oss-20b", env={}).base_url == "http://127.0.0.1:1234/v1"
    with pytest.raises(ConfigError, match="names no model"):
        resolve("ollama/", env={})
    for name in ("qwen3:8b", "llama3"):
        with pytest.raises(ConfigError, match="unknown model"):
            resolve(name, env=KEY)


TOKENS = Usage(1_000_000, 0)


@pytest.mark.parametrize(
    ("name", "env", "priced"),
    [
        ("claude-opus-5", KEY, True),
        ("claude-opus-5", KEY | {"ANTHROPIC_BASE_URL": "https://gateway.example"}, True),
        ("claude-opus-5", KEY | {"ANTHROPIC_BASE_URL": LOCAL}, True),  # a relay: it has a key
        ("claude-opus-5", {"ANTHROPIC_BASE_URL": LOCAL}, False),
        ("gpt-4o", {"OPENAI_BASE_URL": LOCAL}, False),
        ("ollama/gpt-4o", {}, False),
        ("litellm/gpt-4o", {"LITELLM_API_KEY": "k"}, False),
        ("openrouter/anthropic/claude-opus-5", ALL_KEYS, True),
        ("openrouter/moonshotai/kimi-k3", ALL_KEYS, False),
        ("moonshot/kimi-k3", ALL_KEYS, True),
        ("together/moonshotai/kimi-k3", ALL_KEYS, False),
        ("azure/gpt-5", ALL_KEYS, False),
        ("bedrock/us.anthropic.claude-opus-5", ALL_KEYS, False),
        ("relay/claude-opus-5", {}, True),
        ("mine/claude-opus-5", {}, False),
    ],
)
def test_only_who_bills_by_the_list_is_priced_by_it(name, env, priced):
    profiles = {
        "relay": Profile("anthropic", "https://api.anthropic.com", headers={"x-team": "a"}),
        "mine": Profile("anthropic", "https://llm.example"),
    }
    choice = resolve(name, env=env, profiles=profiles)
    assert (build(choice).cost(TOKENS, choice.model) is not None) is priced


def test_profiles():
    profile = Profile(
        "openai-chat", "https://llm.example.com/v1", "MY_KEY", {"x-a": "b"}, 8_000, 2_000
    )
    profiles = {"mine": profile, "openai": Profile("anthropic", LOCAL)}
    choice = resolve("mine/some/model", env={"MY_KEY": "k"}, profiles=profiles)
    assert (choice.kind, choice.provider, choice.model) == ("openai-chat", "mine", "some/model")
    assert (choice.window, choice.max_output, choice.key) == (8_000, 2_000, "k")
    assert resolve("mine", env={"MY_KEY": "k"}, profiles=profiles).model == "mine"
    assert resolve("openai/x", env={}, profiles=profiles).kind == "anthropic"
    with pytest.raises(ConfigError):
        resolve("mine/x", env={}, profiles=profiles)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("openai/gpt-6-sol", "openai-responses"),
        ("gpt-5.4", "openai-responses"),
        ("openai/not-heard-of-yet", "openai-responses"),
        ("gpt-4.1", "openai-chat"),
        ("azure/gpt-6-sol", "openai-responses"),
        ("groq/openai/gpt-oss-120b", "openai-chat"),
    ],
)
def test_openais_models_that_reason_call_tools_only_over_responses(name, kind):
    choice = resolve(name, env=ALL_KEYS)
    assert choice.kind == kind
    assert choice.provider == name.partition("/")[0] if "/" in name else "openai"
    moved = ALL_KEYS | {"OPENAI_BASE_URL": "https://gateway.example/v1"}
    assert resolve("openai/gpt-6-sol", env=moved).kind == "openai-chat"


def test_the_responses_dialect_can_be_asked_for():
    env = {"OPENAI_API_KEY": "k"}
    choice = resolve("openai-responses/gpt-6-sol", env=env)
    assert (choice.kind, choice.model, choice.key) == ("openai-responses", "gpt-6-sol", "k")
    assert isinstance(build(choice), OpenAIResponsesClient)
    moved = {"OPENAI_BASE_URL": LOCAL}
    assert resolve("openai-responses/x", env=moved).base_url == LOCAL
    assert resolve("x", env=moved).kind == "openai-chat"
    mine = {"mine": Profile("openai-responses", LOCAL, context_window=9_000)}
    choice = resolve("mine/x", env={}, profiles=mine)
    assert (choice.kind, build(choice).window) == ("openai-responses", 9_000)


@pytest.mark.parametrize(
    "profile",
    [
        Profile("smoke-signals", LOCAL),
        Profile("openai-chat", "localhost:80"),
        Profile("openai-chat", ""),
        Profile("openai-chat", "http://[::"),
        Profile("openai-chat", LOCAL, quirks=("unheard_of",)),
    ],
)
def test_broken_profiles(profile):
    with pytest.raises(ConfigError):
        resolve("mine/x", env={}, profiles={"mine": profile})


def test_script_and_chaos():
    assert resolve("script:a b.jsonl", env={}).model == "a b.jsonl"
    assert resolve("script:x", env={}).kind == "script"
    assert resolve("chaos:7", env={}).kind == "chaos"


def test_build():
    assert isinstance(build(resolve("opus", env=KEY)), AnthropicClient)
    assert isinstance(build(resolve("x", env={"OPENAI_BASE_URL": LOCAL})), OpenAIChatClient)
    assert build(resolve("opus", env=KEY)).window == resolve("opus", env=KEY).window
    with pytest.raises(ValueError, match="offline"):
        build(resolve(None, env={}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
        ("anthropic/claude-haiku-4.5", "claude-haiku-4.5"),
        ("gpt-5", "gpt-5-2025-08-07"),
        ("us.anthropic.claude-opus-4-1-20250805-v1:0", "claude-opus-4-1"),
    ],
)
def test_the_same_model_by_two_names(one, other):
    assert canonical(one) == canonical(other)


def test_different_models_stay_different():
    assert canonical("claude-sonnet-4") != canonical("claude-sonnet-4-5")
    assert lookup("claude-haiku-4.5") == lookup("claude-haiku-4-5-20251001")
    assert lookup("never-heard-of").window is None


@pytest.mark.parametrize("pasted", ["sk-s3cret-key", "gsk_s3cretkey", "s3cret key"])
def test_a_key_that_stands_where_its_variable_belongs_is_not_shown(pasted):
    box = Profile("openai-chat", "https://box.test/v1", api_key_env=pasted)
    with pytest.raises(ConfigError) as raised:
        resolve("box/m", env={}, profiles={"box": box})
    assert "s3cret" not in raised.value.message + raised.value.hint
    assert "providers.box.apiKeyEnv" in raised.value.hint
