"""Fire the hooks of an event: redacted, on record, and shown."""

from __future__ import annotations

from msgspec.structs import replace

from claw.ports import HookRunner, Redactor
from claw.runtime.recorder import Recorder
from claw.types.entries import HookFinished
from claw.types.events import Notice
from claw.types.hooks import HookOutcome, HookPayload
from claw.types.surrogates import whole

__all__ = ["fire"]


async def fire(
    hooks: HookRunner, redactor: Redactor, log: Recorder, payload: HookPayload
) -> HookOutcome:
    """What the hooks say, without secrets: some of it goes to the model, all to the journal."""
    outcome = _cleaned(whole(await hooks.fire(payload), HookOutcome), redactor)
    for number, run in enumerate(outcome.runs, 1):
        log.record(
            HookFinished(
                payload.event,
                hook=run.digest,
                outcome=run.outcome,
                call_id=payload.call_id,
                messages=run.messages,
                exit_code=run.exit_code,
                ms=run.ms,
                merged=replace(outcome, runs=()) if number == len(outcome.runs) else None,
            )
        )
    for text in outcome.notices:
        log.tell(Notice("hook", "warning", text))
    return outcome


def _cleaned(outcome: HookOutcome, redactor: Redactor) -> HookOutcome:
    def clean(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(redactor.clean, texts))

    return replace(
        outcome,
        reason=redactor.clean(outcome.reason),
        by=redactor.clean(outcome.by),  # a command, and a key may stand in it
        stop=None if outcome.stop is None else redactor.clean(outcome.stop),
        messages=clean(outcome.messages),
        context=clean(outcome.context),
        notices=clean(outcome.notices),
        runs=tuple(replace(run, messages=clean(run.messages)) for run in outcome.runs),
    )
