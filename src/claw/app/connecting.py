"""The models that settings and flags come to, and clients for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack

from claw.app.wishes import Lent, Wishes
from claw.compaction.summarize import Summarizer
from claw.compaction.trigger import Policy
from claw.config.load import Loaded
from claw.config.settings import Provider
from claw.errors import ConfigError, WrongUse
from claw.models.catalog import lookup
from claw.models.estimate import estimate_tokens
from claw.models.fallback import Link
from claw.models.offline.client import CONNECT_HINT, OfflineModel
from claw.models.registry import ModelChoice, Profile, build, resolve
from claw.models.script_files import load_script
from claw.models.scripted import ScriptedModel
from claw.models.transport import HttpTransport
from claw.ports import (
    Blobs,
    ModelClient,
)
from claw.types.events import Notice
from claw.types.usage import Usage

__all__ = [
    "about_the_model",
    "about_the_wire",
    "chain",
    "choose_model",
    "compaction_of",
    "connect",
    "fallbacks",
    "profiles",
    "refuse_unpriced",
    "split_names",
    "summarizer",
]


def choose_model(loaded: Loaded, env: Mapping[str, str]) -> ModelChoice:
    """The model that settings and environment come to. Raises ``ConfigError``."""
    return resolve(loaded.settings.model, env=env, profiles=profiles(loaded))


def fallbacks(
    choice: ModelChoice, loaded: Loaded, env: Mapping[str, str]
) -> tuple[ModelChoice, ...]:
    """Raises ``ConfigError`` for one that cannot be asked: it would be found out too late."""
    named = split_names(loaded.settings.fallback_model or "")
    others = [resolve(name, env=env, profiles=profiles(loaded)) for name in named]
    if any(other.kind == "offline" for other in others):
        raise ConfigError(
            "the offline model cannot stand in for another one",
            hint="Take it out of `--fallback-model` or `fallbackModel`.",
        )
    first = (choice.provider, choice.model)
    return tuple(other for other in others if (other.provider, other.model) != first)


def split_names(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def profiles(loaded: Loaded) -> dict[str, Profile]:
    """The model servers from the settings, by name."""
    return {name: _profile(given) for name, given in loaded.settings.providers.items()}


def _profile(given: Provider) -> Profile:
    return Profile(
        dialect=given.dialect,
        base_url=given.base_url,
        api_key_env=given.api_key_env,
        headers=given.headers,
        context_window=given.context_window,
        max_output=given.max_output,
        quirks=tuple(name for name, on in given.quirks.items() if on),
        tools=given.tools,
    )


async def chain(
    choices: Sequence[ModelChoice], lent: Lent, client: Callable[[ModelChoice], ModelClient]
) -> tuple[Link, ...]:
    """The models to ask, in this order. A lent one stands for the first choice."""
    first = lent.model or client(choices[0])
    return (
        Link(first, choices[0].model),
        *(Link(client(choice), choice.model) for choice in choices[1:]),
    )


def connect(
    blobs: Blobs,
    stack: AsyncExitStack,
    choice: ModelChoice,
    *,
    at_once: bool = False,
    record_wire: bool = False,
    places: Mapping[str, str] | None = None,
) -> ModelClient:
    """A client for it, until ``stack`` is closed. ``blobs`` are those of its requests.

    ``record_wire`` as for ``build``, ``places`` as for ``load_script``. Raises ``ConfigError``.
    """
    match choice.kind:
        case "offline":
            return OfflineModel()
        case "script":
            return ScriptedModel(load_script(choice.model, places))
        case "chaos":
            raise ConfigError(
                "`chaos:` is for tests: wrap a client in `claw.testing.ChaosModel`",
                hint="Name a model, or `offline`.",
            )
        case _:
            transport = HttpTransport()
            stack.push_async_callback(transport.aclose)
            if at_once:
                transport.warm(choice.base_url)
            return build(choice, transport=transport, blobs_get=blobs.get, record_wire=record_wire)


def compaction_of(loaded: Loaded, choice: ModelChoice) -> Policy:
    """When conversations with this model are compacted."""
    settings = loaded.settings
    given = settings.compaction
    reserve = settings.max_output_tokens or lookup(choice.model).max_tokens
    if given.threshold is None:
        return Policy(given.auto, reserve=reserve)
    return Policy(given.auto, given.threshold, reserve)


def summarizer(
    loaded: Loaded, wishes: Wishes, blobs: Blobs, stack: AsyncExitStack
) -> Summarizer | None:
    """Another model for summaries, where the settings name one. Raises ``ConfigError``."""
    if not (name := loaded.settings.compaction.model):
        return None
    choice = resolve(name, env=wishes.env, profiles=profiles(loaded))
    if choice.kind == "offline":
        return None
    client = connect(blobs, stack, choice)
    return Summarizer(client, choice.model, estimate_tokens)


def refuse_unpriced(links: Sequence[Link]) -> None:
    """Raises ``WrongUse``: what a model costs has to be known where dollars are limited."""
    for link in links:
        if link.client.cost(Usage(), link.model) is None:
            raise WrongUse(
                f"a budget in dollars needs a price, and that of `{link.model}` is not known",
                hint="Use `--max-budget-tokens`, or another model.",
            )


def about_the_model(choice: ModelChoice) -> tuple[Notice, ...]:
    """That nothing was configured, if so."""
    if choice.kind != "offline" or choice.named:
        return ()
    text = f"No model is configured: the offline model answers. {CONNECT_HINT}"
    return (Notice("offline", "info", text),)


def about_the_wire(choices: Sequence[ModelChoice]) -> tuple[Notice, ...]:
    """That no model here has bytes to record, if so."""
    if any(choice.base_url for choice in choices):
        return ()
    text = "`--record-wire`: there is nothing to record, for this model sends no bytes."
    return (Notice("record_wire", "warning", text),)
