"""Nobody to ask: what needs a yes is denied, and the model is told why."""

from __future__ import annotations

from claw.types.permissions import Answer, Question

__all__ = ["HeadlessApprover"]


class HeadlessApprover:
    """Implements ``Approver`` where there is no terminal."""

    async def ask(self, question: Question) -> Answer:
        return Answer(
            allow=False,
            asked=False,
            reason=(
                f"{question.reason}, and there is nobody to ask (headless); allow it with "
                "--allowedTools or a wider --permission-mode"
            ),
        )
