"""Which model is meant: from a name, the environment and the configured profiles.

In this order: ``offline``; ``script:FILE`` and ``chaos:...``; an alias (``opus``);
a configured profile, alone or as ``PROFILE/MODEL``; ``PROVIDER/MODEL`` of a known
provider; a name whose beginning tells the maker (``claude-``, ``gpt-``); and, where
a base URL is set in the environment, any name at all: it goes there, to
``ANTHROPIC_BASE_URL`` unless only OpenAI's key or URL is there.

No name at all: the first provider of ``PROVIDERS`` that has a default model and a key
(or a base URL of this machine), and that model; without any, the offline model. The
servers that mostly listen on this machine have no default: each is used only by name.

Addresses, key variables and default models are those of the providers' documentation,
looked up in November 2026.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from functools import cache
from typing import Literal

import msgspec

from claw.errors import ConfigError
from claw.models.address import is_loopback, parse_address
from claw.models.anthropic.client import AnthropicClient
from claw.models.catalog import ALIASES, KNOWN, lookup
from claw.models.dialect import DIALECTS, Dialect
from claw.models.discovery import USUAL_PORTS
from claw.models.http import Transport
from claw.models.openai_chat.client import OpenAIChatClient
from claw.models.openai_chat.encode import QUIRKS
from claw.models.openai_chat.schema_client import SchemaChatClient
from claw.models.openai_responses.client import OpenAIResponsesClient
from claw.models.transport import HttpTransport
from claw.models.wire_text import BlobsGet, no_blobs
from claw.ports import ModelClient

__all__ = ["PROVIDERS", "ModelChoice", "Profile", "Provider", "build", "connection", "resolve"]


class Provider(msgspec.Struct, frozen=True):
    """A service that claw knows by name.

    ``base_url_env`` may move it elsewhere; ``place_env`` are variables of which the first
    that is set fills the ``{}`` in ``base_url``. ``bearer_env`` holds a token instead of a
    key. ``sells`` are beginnings of models' names that cost their list price there.
    ``reasoning`` is the dialect for models that reason, where it is another one.
    """

    name: str
    dialect: Dialect
    base_url: str
    key_env: tuple[str, ...]
    default_model: str
    base_url_env: str = ""
    bearer_env: str = ""
    place_env: tuple[str, ...] = ()
    quirks: frozenset[str] = frozenset()
    sells: tuple[str, ...] = ()
    reasoning: Dialect | None = None


_ALL = ("",)
_LOCAL_KEYS = {"vllm": ("VLLM_API_KEY",), "litellm": ("LITELLM_API_KEY",)}  # may be set there

PROVIDERS = (
    Provider(
        "anthropic",
        "anthropic",
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY",),
        "claude-sonnet-5-5",
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_AUTH_TOKEN",
        sells=_ALL,
    ),
    Provider(
        "openai",
        "openai-chat",
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        "gpt-6.2-sol",
        "OPENAI_BASE_URL",
        sells=_ALL,
        reasoning="openai-responses",  # Chat Completions refuses them tools since GPT-5.4
    ),
    Provider(
        "openai-responses",
        "openai-responses",
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        "gpt-6.2-sol",
        "OPENAI_BASE_URL",
        sells=_ALL,
    ),
    Provider(
        "openrouter",
        "openai-chat",
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
        "openrouter/auto",
        sells=("claude-", "gpt-5", "gpt-6", "o3", "grok-"),  # of open models each host's price
    ),
    Provider(
        "gemini",
        "openai-chat",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "gemini-flash-latest",
        quirks=frozenset({"gemini_schema"}),
        sells=_ALL,
    ),
    Provider(
        "deepseek",
        "openai-chat",
        "https://api.deepseek.com/v1",
        ("DEEPSEEK_API_KEY",),
        "deepseek-v4-pro",
        quirks=frozenset({"echo_reasoning"}),
        sells=_ALL,
    ),
    Provider(
        "mistral",
        "openai-chat",
        "https://api.mistral.ai/v1",
        ("MISTRAL_API_KEY",),
        "mistral-large-latest",
        quirks=frozenset({"short_ids", "no_stream_options", "assistant_before_user"}),
        sells=_ALL,
    ),
    Provider(
        "groq",
        "openai-chat",
        "https://api.groq.com/openai/v1",
        ("GROQ_API_KEY",),
        "openai/gpt-oss-120b",
    ),
    Provider("xai", "openai-chat", "https://api.x.ai/v1", ("XAI_API_KEY",), "grok-4.7", sells=_ALL),
    Provider(
        "moonshot",
        "openai-chat",
        "https://api.moonshot.ai/v1",
        ("MOONSHOT_API_KEY", "KIMI_API_KEY"),
        "kimi-k3",
        quirks=frozenset({"echo_reasoning", "moonshot_schema"}),
        sells=_ALL,
    ),
    Provider(
        "zai",
        "openai-chat",
        "https://api.z.ai/api/paas/v4",
        ("ZAI_API_KEY",),
        "glm-5.1",
    ),
    Provider(
        "qwen",
        "openai-chat",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        ("DASHSCOPE_API_KEY",),
        "qwen3-max",
        "DASHSCOPE_BASE_URL",
    ),
    Provider(
        "together",
        "openai-chat",
        "https://api.together.xyz/v1",
        ("TOGETHER_API_KEY",),
        "openai/gpt-oss-120b",
    ),
    Provider(
        "fireworks",
        "openai-chat",
        "https://api.fireworks.ai/inference/v1",
        ("FIREWORKS_API_KEY",),
        "accounts/fireworks/models/gpt-oss-120b",
    ),
    Provider(
        "cerebras",
        "openai-chat",
        "https://api.cerebras.ai/v1",
        ("CEREBRAS_API_KEY",),
        "gpt-oss-120b",
    ),
    Provider(
        "bedrock",
        "openai-chat",
        "https://bedrock-runtime.{}.amazonaws.com/openai/v1",
        ("AWS_BEARER_TOKEN_BEDROCK",),
        "openai.gpt-oss-120b-1:0",
        place_env=("AWS_REGION", "AWS_DEFAULT_REGION"),
    ),
    Provider(
        "azure",
        "openai-chat",
        "{}/openai/v1",
        ("AZURE_OPENAI_API_KEY",),
        "",  # a model is a deployment, which has any name
        bearer_env="AZURE_OPENAI_AD_TOKEN",
        place_env=("AZURE_OPENAI_ENDPOINT",),
        quirks=frozenset({"max_completion_tokens"}),
        reasoning="openai-responses",
    ),
    Provider(
        "huggingface",
        "openai-chat",
        "https://router.huggingface.co/v1",
        ("HF_TOKEN",),
        "",  # most who have a token have it for something else
    ),
    *(
        Provider(name, "openai-chat", f"http://127.0.0.1:{port}/v1", _LOCAL_KEYS.get(name, ()), "")
        for name, port in USUAL_PORTS
    ),
)
"""In the order in which a key decides where no model is named."""

_BY_NAME = {provider.name: provider for provider in PROVIDERS}

_MAKERS = (
    ("claude-", "anthropic"),
    ("gpt-", "openai"),
    ("chatgpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("gemini-", "gemini"),
    ("deepseek-", "deepseek"),
    ("mistral-", "mistral"),
    ("devstral-", "mistral"),
    ("codestral-", "mistral"),
    ("grok-", "xai"),
    ("kimi-", "moonshot"),
    ("glm-", "zai"),
)


class Profile(msgspec.Struct, frozen=True):
    """A model server from the user's settings; limits in tokens. Headers may hold secrets.

    ``tools`` is how they are offered: ``native``, or ``json_schema`` for models that know
    no calls (see ``schema_tools``).
    """

    dialect: str
    base_url: str
    api_key_env: str = ""
    headers: Mapping[str, str] = {}
    context_window: int | None = None
    max_output: int | None = None
    quirks: tuple[str, ...] = ()
    tools: Literal["native", "json_schema"] = "native"

    def __repr__(self) -> str:
        return f"Profile({self.dialect!r}, {self.base_url!r})"


class ModelChoice(msgspec.Struct, frozen=True):
    """The model that was meant, with all that a client needs.

    For ``script`` and ``chaos`` the rest of the name is in ``model``. ``named`` is
    False where nobody asked for a model. ``sells`` is as in ``Provider``. ``key`` and
    ``headers`` stay out of ``repr``.
    """

    kind: Literal["offline", "script", "chaos"] | Dialect
    provider: str
    model: str
    named: bool = True
    base_url: str = ""
    key: str = ""
    bearer: bool = False
    headers: Mapping[str, str] = {}
    window: int | None = None
    max_output: int | None = None
    quirks: frozenset[str] = frozenset()
    sells: tuple[str, ...] = ()
    tools: Literal["native", "json_schema"] = "native"

    def __repr__(self) -> str:
        where = f", {self.base_url!r}" if self.base_url else ""
        return f"ModelChoice({self.kind!r}, {self.provider!r}, {self.model!r}{where})"


def resolve(
    name: str | None, *, env: Mapping[str, str], profiles: Mapping[str, Profile] | None = None
) -> ModelChoice:
    """The model that ``name`` means. Raises ``ConfigError`` before anything is sent."""
    wanted = (name or "").strip()
    if not wanted:
        return _default(env)
    if wanted == "offline":
        return ModelChoice("offline", "offline", "offline")
    scheme, colon, rest = wanted.partition(":")
    if colon and rest and scheme == "script":
        return ModelChoice("script", "script", rest)
    if scheme == "chaos":
        return ModelChoice("chaos", "chaos", rest)
    prefix, slash, model = wanted.partition("/")
    if profiles and prefix in profiles and (model or not slash):
        return _from_profile(prefix, profiles[prefix], model or prefix, env)
    if wanted in ALIASES:
        return _from_provider(_BY_NAME["anthropic"], ALIASES[wanted], env)
    if slash and prefix in _BY_NAME:
        if not model:
            example = _BY_NAME[prefix].default_model or "MODEL"
            raise ConfigError(
                f"`{wanted}` names no model", hint=f"Write `{prefix}/{example}`, for instance."
            )
        return _from_provider(_BY_NAME[prefix], model, env)
    custom = _custom_server(env)
    maker = next((maker for start, maker in _MAKERS if wanted.startswith(start)), None)
    if maker is not None:
        provider = _BY_NAME[maker]
        # A base URL may front every model; the maker's own key still comes first.
        if custom is not None and custom is not provider and not _can_reach(provider, env):
            provider = custom
        if provider is not custom and _is_misspelt(wanted):
            raise _unknown(wanted, profiles or {}, maker)
        if provider is custom or _can_reach(provider, env) or _looks_known(wanted):
            return _from_provider(provider, wanted, env)
    if custom is not None:
        return _from_provider(custom, wanted, env)
    if maker is not None:
        return _from_provider(_BY_NAME[maker], wanted, env)
    raise _unknown(wanted, profiles or {})


def build(
    choice: ModelChoice,
    *,
    transport: Transport | None = None,
    blobs_get: BlobsGet = no_blobs,
    record_wire: bool = False,
) -> ModelClient:
    """The client for a choice of a wire dialect. ``ValueError`` for the other kinds.

    Without a ``transport`` it makes one of its own; whoever lends one closes it.
    With ``record_wire`` its streams have the bytes of the replies as well.
    """
    transport = transport or HttpTransport()
    match choice.kind:
        case "anthropic":
            return AnthropicClient(
                transport,
                base_url=choice.base_url,
                api_key="" if choice.bearer else choice.key,
                auth_token=choice.key if choice.bearer else "",
                headers=choice.headers,
                window=choice.window,
                max_output=choice.max_output,
                provider=choice.provider,
                blobs_get=blobs_get,
                sells=choice.sells,
                record_wire=record_wire,
            )
        case "openai-chat":
            client = SchemaChatClient if choice.tools == "json_schema" else OpenAIChatClient
            return client(
                transport,
                base_url=choice.base_url,
                api_key=choice.key,
                headers=choice.headers,
                window=choice.window,
                provider=choice.provider,
                quirks=choice.quirks,
                blobs_get=blobs_get,
                sells=choice.sells,
                record_wire=record_wire,
            )
        case "openai-responses":
            return OpenAIResponsesClient(
                transport,
                base_url=choice.base_url,
                api_key=choice.key,
                headers=choice.headers,
                window=choice.window,
                provider=choice.provider,
                blobs_get=blobs_get,
                sells=choice.sells,
                record_wire=record_wire,
            )
        case _:
            raise ValueError(f"{choice.kind!r} speaks no wire dialect")


def connection(provider: Provider, env: Mapping[str, str]) -> tuple[str, bool]:
    """A provider's base URL and whether there are credentials for it; never those.

    The URL is blank where it is in a variable that is not set.
    """
    return _base_url(provider, env), bool(_credentials(provider, env)[0])


def _default(env: Mapping[str, str]) -> ModelChoice:
    for provider in PROVIDERS:
        if provider.default_model and _can_reach(provider, env):
            return _from_provider(provider, provider.default_model, env, named=False)
    return ModelChoice("offline", "offline", "offline", named=False)


def _custom_server(env: Mapping[str, str]) -> Provider | None:
    """The provider whose base URL the environment moves elsewhere."""
    moved = [p for p in PROVIDERS if p.base_url_env and env.get(p.base_url_env, "").strip()]
    if len(moved) > 1:
        with_key = [p for p in moved if _credentials(p, env)[0]]
        return (with_key or moved)[0]
    return moved[0] if moved else None


def _can_reach(provider: Provider, env: Mapping[str, str]) -> bool:
    base_url = _base_url(provider, env)
    return _is_local(base_url) or bool(base_url and _credentials(provider, env)[0])


def _looks_known(model: str) -> bool:
    return lookup(model).window is not None


def _base_url(provider: Provider, env: Mapping[str, str]) -> str:
    moved = env.get(provider.base_url_env, "").strip() if provider.base_url_env else ""
    if moved or not provider.place_env:
        return moved or provider.base_url
    places = (env.get(variable, "").strip().rstrip("/") for variable in provider.place_env)
    place = next(filter(None, places), "").removesuffix("/openai/v1")
    return provider.base_url.format(place) if place else ""


def _credentials(provider: Provider, env: Mapping[str, str]) -> tuple[str, bool]:
    """The key or token, and whether it is a bearer token."""
    for name in provider.key_env:
        if key := env.get(name, "").strip():
            return key, False
    token = env.get(provider.bearer_env, "").strip() if provider.bearer_env else ""
    return token, bool(token)


def _is_local(url: str) -> bool:
    try:
        return is_loopback(parse_address(url).host)
    except ValueError:
        return False


def _from_provider(
    provider: Provider, model: str, env: Mapping[str, str], *, named: bool = True
) -> ModelChoice:
    key, bearer = _credentials(provider, env)
    place_env = " or ".join(f"`{variable}`" for variable in provider.place_env)
    base_url = _base_url(provider, env)
    if not base_url:
        raise ConfigError(f"it is not said where {provider.name} is", hint=f"Set {place_env}.")
    source = provider.base_url_env or place_env.strip("`") or provider.name
    base_url = _checked(base_url, source, secret=bool(key))
    if not key and not _is_local(base_url):
        variables = " or ".join(f"`{v}`" for v in (*provider.key_env, provider.bearer_env) if v)
        raise ConfigError(
            f"no credentials for `{model}` at {provider.name}", hint=f"Set {variables}."
        )
    info = lookup(model)
    quirks = provider.quirks
    if base_url == _BY_NAME["openai"].base_url:
        quirks |= {"max_completion_tokens"}
    if _is_local(base_url):
        quirks |= {"llama_schema"}  # what llama.cpp refuses; the others here take it as well
    dialect = provider.dialect
    moved = bool(provider.base_url_env and env.get(provider.base_url_env, "").strip())
    known_not_to_reason = info.window is not None and not info.thinking
    if provider.reasoning is not None and not moved and not known_not_to_reason:
        dialect = provider.reasoning
    return ModelChoice(
        dialect,
        provider.name,
        model,
        named,
        base_url,
        key,
        bearer,
        window=info.window,
        max_output=info.max_output,
        quirks=quirks,
        sells=provider.sells if key else (),  # a server of this machine bills nobody
    )


def _from_profile(name: str, profile: Profile, model: str, env: Mapping[str, str]) -> ModelChoice:
    """A profile that is named alone sends its own name as the model's."""
    dialect = next((d for d in DIALECTS if d == profile.dialect), None)
    if dialect is None:
        raise ConfigError(
            f"provider `{name}` has the unknown dialect `{profile.dialect}`",
            hint=f"Known: {', '.join(DIALECTS)}.",
        )
    unknown = sorted(set(profile.quirks) - QUIRKS)
    if unknown:
        raise ConfigError(
            f"provider `{name}` has the unknown quirk `{unknown[0]}`",
            hint=f"Known: {', '.join(sorted(QUIRKS))}.",
        )
    if profile.tools == "json_schema" and dialect != "openai-chat":
        raise ConfigError(
            f"provider `{name}` has `tools: json_schema`, which is for the dialect `openai-chat`",
            hint="Servers that bind a reply to a schema speak it too: set `dialect` to "
            "`openai-chat`, or `tools` to `native`.",
        )
    key = env.get(profile.api_key_env, "").strip() if profile.api_key_env else ""
    secret = bool(key) or any(map(_holds_secret, profile.headers))
    base_url = _checked(profile.base_url.strip(), f"providers.{name}.baseUrl", secret=secret)
    if profile.api_key_env and not key and not _is_local(base_url):
        raise _no_key(name, profile.api_key_env)
    info = lookup(model)
    return ModelChoice(
        dialect,
        name,
        model,
        base_url=base_url,
        key=key,
        headers=profile.headers,
        window=profile.context_window or info.window,
        max_output=profile.max_output or info.max_output,
        quirks=frozenset(profile.quirks),
        sells=_sold_at(base_url),
        tools=profile.tools,
    )


def _no_key(name: str, variable: str) -> ConfigError:
    """Quotes what is written like a variable; anything else may be the key itself."""
    setting = f"providers.{name}.apiKeyEnv"
    if re.fullmatch(r"[A-Z_][A-Z0-9_]*", variable):
        hint = f"Set `{variable}`."
    else:
        hint = f"`{setting}` is the name of an environment variable, never the key; set that one."
    return ConfigError(f"no credentials for provider `{name}`", hint=hint)


def _sold_at(base_url: str) -> tuple[str, ...]:
    """What costs its list price where a profile leads: nothing, unless a provider is there."""
    host = parse_address(base_url).host
    known = (p for p in PROVIDERS if not p.place_env and parse_address(p.base_url).host == host)
    return next((provider.sells for provider in known), ())


def _checked(url: str, source: str, *, secret: bool) -> str:
    """The URL itself; ``secret``: a key goes there, so not in the clear through the internet."""
    try:
        address = parse_address(url)
    except ValueError as error:
        raise ConfigError(
            f"the base URL in `{source}` is no web address: {error}",
            hint="Write it like `https://host/path`, or `http://127.0.0.1:8080` for a server "
            "of your own.",
        ) from error
    if secret and address.scheme == "http" and not _is_near(address.host):
        raise ConfigError(
            f"the base URL in `{source}` is `http://{address.place}`: the key would cross the "
            "internet in the clear",
            hint="Use `https://`, or reach the server through a tunnel that ends at "
            "`http://127.0.0.1:PORT`.",
        )
    return url


def _is_near(host: str) -> bool:
    """Whether a host is this machine or in a network of one's own.

    Private addresses, names that only such networks resolve (RFC 6762, RFC 8375; a name
    without a dot is one of a container or of the local network).
    """
    name = host.removesuffix(".")
    if ":" in name or name.replace(".", "").isdigit():
        try:
            return not ipaddress.ip_address(name).is_global
        except ValueError:
            return False
    return "." not in name or name.endswith((".local", ".lan", ".internal", ".localhost"))


def _holds_secret(header: str) -> bool:
    return any(word in header.lower() for word in ("auth", "key", "token", "cookie", "secret"))


def _is_misspelt(name: str) -> bool:
    """Whether a name of Claude or GPT has a word that no such model has in its name.

    New numbers are fine, and new words are once the provider is named as well.
    """
    words = set(re.findall("[a-z]{3,}", name.lower()))
    return name.startswith(("claude-", "gpt-")) and not words <= _words()


@cache
def _words() -> frozenset[str]:
    return frozenset(re.findall("[a-z]{3,}", " ".join((*KNOWN, *ALIASES.values(), _VARIANTS))))


_VARIANTS = (
    "mythos instant terra chat latest preview codex max mini nano pro turbo instruct audio "
    "realtime search image oss"
)


def _unknown(name: str, profiles: Mapping[str, Profile], maker: str = "openai") -> ConfigError:
    import difflib  # only for people who mistype: 3 ms

    known = ("offline", *ALIASES, *KNOWN, *profiles)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    prefix, slash, model = name.partition("/")
    if slash:  # a provider's name with a slip in it
        near = difflib.get_close_matches(prefix, [*_BY_NAME, *profiles], n=2, cutoff=0.6)
        near = [f"{provider}/{model}" for provider in near]
    hint = f"Did you mean {', '.join(f'`{n}`' for n in near)}? " if near else ""
    return ConfigError(
        f"unknown model `{name}`",
        hint=f"{hint}Any model can be had as `provider/model`, for instance "
        f"`{maker}/{model or name}`.",
    )
