from __future__ import annotations

import re

from claw.ports import Clock
from claw.testing.conformance import ClockSuite
from claw.workspace.clock import SystemClock, SystemIds


class TestConformance(ClockSuite):
    def make(self) -> Clock:
        return SystemClock()


def test_session_ids_are_distinct_and_sort_by_time() -> None:
    ids = [SystemIds().session() for _ in range(50)]
    assert len(set(ids)) == 50
    assert all(re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{6}", one) for one in ids)
    assert ids[0][:15] <= ids[-1][:15]
