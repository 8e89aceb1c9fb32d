"""What a compaction would keep, and what it would say of the rest. Pure.

Sizes are estimated tokens of messages, as ``Estimates`` counts them, unless a ``Look``
gives them.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from claw.compaction.cut import cut_keeping, is_said, removed_by
from claw.compaction.digest import digest
from claw.compaction.notes import Notes, fit_requests, parse, render
from claw.compaction.prune import stubs
from claw.compaction.telling import Tokens, calls_of, said
from claw.compaction.trigger import Count, Look
from claw.types.entries import Compacted
from claw.types.messages import Message, Text, UserMessage
from claw.types.request import Request, Sampling
from claw.types.transcript import Transcript

__all__ = ["Estimates", "Plan", "Task", "entry_of", "plan_cut", "prune"]

NEWEST = 3
"""Rounds whose results are never pruned: they are what the model works with."""
LARGEST_NOTES = 4_000
SMALLEST_NOTES = 150
LAST_RESORT = 600
"""Of notes, where nothing else is to be kept and nobody knows what fits."""
SHARE_OF_REQUESTS = 5
"""A fifth of the size to come down to is for what the user said earlier."""


class Estimates(msgspec.Struct, frozen=True):
    """How tokens are counted without asking anybody: of a request, of a text."""

    request: Count
    text: Tokens

    def messages(self, messages: tuple[Message, ...]) -> int:
        return self.request(Request("", messages, (), Sampling("")))


class Task(msgspec.Struct, frozen=True):
    """A conversation and the size that it must come down to, None for as small as may be.

    ``where`` is what notes say of the full text.
    """

    transcript: Transcript
    look: Look
    target: int | None
    estimates: Estimates
    where: str


class Plan(msgspec.Struct, frozen=True):
    """A cut with notes that needed no model.

    ``record`` is what the notes are about besides ``previous``; ``most`` is how large a
    summary may be. ``left_out`` is what the digest in the notes does not tell.
    """

    cut: int
    record: tuple[Message, ...] = ()
    previous: str = ""
    notes: Notes | None = None
    pruned: dict[str, str] = {}
    dropped: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    most: int = 0


def prune(task: Task) -> tuple[dict[str, str], bool]:
    """Stubs for old results by call, and whether no more than they are needed."""
    if task.target is None:
        return {}, False
    closed = task.transcript.closed
    size = task.estimates.messages(closed)
    chosen: dict[str, str] = {}
    before = cut_keeping(task.transcript, NEWEST)
    for stub in stubs(closed, before, task.estimates.text):
        if size <= task.target:
            break
        chosen[stub.call_id] = stub.text
        size -= stub.saves
    return chosen, size <= task.target and bool(chosen)


def plan_cut(task: Task, keep_rounds: int, pruned: dict[str, str]) -> Plan | None:
    """The cut that keeps most and comes down to the target; else the one nearest to it.

    None where no cut makes the conversation smaller.
    """
    plan = None
    look, target = task.look, task.target
    for keep in [keep_rounds] if target is None else _fewer_and_fewer(keep_rounds):
        cut = cut_keeping(task.transcript, keep)
        if not (removed := removed_by(task.transcript, cut)):
            continue
        kept_calls = calls_of(task.transcript.closed[cut:])
        stubbed = {id: text for id, text in pruned.items() if id in kept_calls}
        last_resort = keep == 0 and target is None
        drawn = _with_notes(task, Plan(cut, removed, pruned=stubbed), last_resort=last_resort)
        after = entry_of(task, drawn).tokens_after
        if after >= look.live:
            continue
        plan = drawn
        if target is None or after <= look.fixed + look.scale * target:
            break
    return plan


def entry_of(task: Task, plan: Plan) -> Compacted:
    """The entry that carries out a plan."""
    summary = () if plan.notes is None else (Text(render(plan.notes, task.where)),)
    after = task.transcript.compact(plan.cut, summary, plan.pruned)
    dropped = (*plan.dropped, *plan.left_out)
    if stubbed := len(plan.pruned):
        dropped = (*dropped, f"{stubbed} old result{'' if stubbed == 1 else 's'}")
    return Compacted(
        trigger="auto",
        removed_messages=len(plan.record),
        kept_from=plan.cut,
        summary=summary,
        tokens_before=task.look.live,
        tokens_after=task.look.fixed
        + round(task.look.scale * task.estimates.messages(after.closed)),
        dropped=dropped,
        pruned=plan.pruned,
    )


def _with_notes(task: Task, plan: Plan, *, last_resort: bool) -> Plan:
    tokens = task.estimates.text
    before = _notes_in(task.transcript)
    most = _most(task, plan, last_resort=last_resort)
    asked = tuple(said(m.content) for m in plan.record if isinstance(m, UserMessage) and is_said(m))
    notes = replace(before, requests=(*before.requests, *asked))
    share = most // 2 if task.target is None else task.target // SHARE_OF_REQUESTS
    notes, dropped = fit_requests(notes, share, tokens)
    summary, left_out = digest(plan.record, before.summary, most, tokens)
    return replace(
        plan,
        previous=before.summary,
        notes=replace(notes, summary=summary),
        dropped=dropped,
        left_out=left_out,
        most=most,
    )


def _most(task: Task, plan: Plan, *, last_resort: bool) -> int:
    """Tokens for a summary: a part of what it is about, and of the room that there is."""
    look = task.look
    kept = task.estimates.messages(task.transcript.compact(plan.cut, (), plan.pruned).closed)
    most = min(task.estimates.messages(plan.record) // 4, LARGEST_NOTES)
    room = task.target
    if room is None and look.usable is not None:
        room = int((look.usable - look.fixed) / look.scale)
    if room is not None:
        most = min(most, (room - kept) // 2)
    if last_resort:
        most = min(most, LAST_RESORT)
    return max(most, SMALLEST_NOTES)


def _notes_in(transcript: Transcript) -> Notes:
    """What the last compaction left at the head of a conversation."""
    if not transcript.notes:
        return Notes()
    first = transcript.closed[0].content[0]
    return (parse(first.text) if isinstance(first, Text) else None) or Notes()


def _fewer_and_fewer(rounds: int) -> Iterator[int]:
    while rounds > 0:
        yield rounds
        rounds //= 2
    yield 0
