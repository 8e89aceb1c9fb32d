"""The ``Compactor`` port: prune, cut, summarise, in this order and no more than it takes."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from claw.compaction.plan import Estimates, Plan, Task, entry_of, plan_cut, prune
from claw.compaction.summarize import Summarizer, Written
from claw.compaction.telling import told
from claw.compaction.trigger import Look, Policy, has_grown, is_due, limit_of, look_at, may_be_due
from claw.types.entries import Compacted
from claw.types.events import Notice
from claw.types.request import Request
from claw.types.session import SessionState
from claw.types.transcript import Transcript

__all__ = ["PruningCompactor"]

WORTH_ASKING = 1_000  # tokens; a list tells as much of less
PIECE = 24_000  # tokens of the record in one request, where no window is known


class PruningCompactor:
    """Makes room in one conversation.

    ``summarizer`` is asked for summaries; None leaves them to the digest. ``where`` tells
    the model how to get at the full text; ``tell`` shows notices.
    """

    def __init__(
        self,
        policy: Policy,
        estimates: Estimates,
        tell: Callable[[Notice], None],
        *,
        summarizer: Summarizer | None = None,
        where: str = "",
    ) -> None:
        self._policy = policy
        self._estimates = estimates
        self._tell = tell
        self._summarizer = summarizer
        self._where = where
        self._seen: tuple[Request, SessionState, int | None] | None = None
        self._warned = False
        self._stuck_at = 0  # the size at which nothing could go

    def target(self, request: Request, state: SessionState, window: int | None) -> int | None:
        self._seen = (request, state, window)
        limit, count = limit_of(self._policy, window), self._estimates.request
        if not self._policy.auto or limit is None:
            return None
        if not may_be_due(request, state, window, limit, count):
            return None
        look = look_at(request, state, window, self._policy, count)
        if not is_due(look, state, limit) or not has_grown(look, self._stuck_at, limit):
            return None
        if look.fixed >= limit:
            self._warn_once(look, limit)
            return None
        return round((limit - look.fixed) / 2 / look.scale)

    async def make_room(
        self, transcript: Transcript, keep_rounds: int, target_tokens: int | None, focus: str
    ) -> Compacted | None:
        if transcript.reply is not None or not transcript.closed:
            return None
        task = Task(transcript, self._look(transcript), target_tokens, self._estimates, self._where)
        pruned, enough = prune(task)
        if enough:
            return entry_of(task, Plan(0, pruned=pruned))
        plan = plan_cut(task, keep_rounds, pruned)
        self._stuck_at = task.look.live if plan is None else 0
        if plan is None:
            return None
        entry = entry_of(task, plan)
        written = await self._written(plan, task, focus)
        if written.text and plan.notes is not None:
            notes = replace(plan.notes, summary=written.text)
            better = entry_of(task, replace(plan, notes=notes, left_out=()))
            if better.tokens_after < better.tokens_before:
                entry = better
        return replace(entry, usage=written.usage, cost=written.cost)

    def _look(self, transcript: Transcript) -> Look:
        if self._seen is None:
            return Look(self._estimates.messages(transcript.closed), 0, 1.0, None)
        return look_at(*self._seen, self._policy, self._estimates.request)

    async def _written(self, plan: Plan, task: Task, focus: str) -> Written:
        """The model's summary; blank where nobody is asked, or it is no good."""
        small = not plan.left_out and task.estimates.messages(plan.record) < WORTH_ASKING
        if self._summarizer is None or (small and not focus):
            return Written()
        windows = [self._summarizer.client.window, task.look.usable]
        known = [window for window in windows if window is not None]
        piece = min(known) // 2 if known else min(PIECE, task.look.live // 2)
        written = await self._summarizer.write(
            [*told(plan.record)],
            plan.previous,
            focus,
            most=plan.most,
            piece=round(piece / task.look.scale),
        )
        if not written.text:
            text = (
                f"The model's summary failed ({written.problem}); "
                "a list of what was done takes its place."
            )
            self._tell(Notice("compaction", "warning", text))
        return written

    def _warn_once(self, look: Look, limit: int) -> None:
        if not self._warned:
            self._warned = True
            text = (
                f"The system prompt and the tools alone take about {look.fixed:,} tokens, more "
                f"than the {limit:,} at which a conversation is compacted: it will not be. "
                "Offer fewer tools, or raise `--auto-compact`."
            )
            self._tell(Notice("compaction", "warning", text))
