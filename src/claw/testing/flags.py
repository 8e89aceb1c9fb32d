"""The names of the pytest plugin's options."""

from __future__ import annotations

__all__ = ["RECORD", "UPDATE"]

UPDATE = "--claw-update"
RECORD = "--claw-record"
