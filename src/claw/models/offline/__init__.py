"""The offline model: useful without weights, network or key."""

from __future__ import annotations

from claw.models.offline.client import CONNECT_HINT, MODEL, OfflineModel
from claw.models.offline.plans import describe_abilities

__all__ = ["CONNECT_HINT", "MODEL", "OfflineModel", "describe_abilities"]
