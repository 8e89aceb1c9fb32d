"""Times, ages and sizes as people say them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

__all__ = ["ago", "human_size", "local_time", "seconds_of", "world_time"]

_UNITS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def local_time(utc: str) -> str:
    """``2026-11-30 14:20`` for a time of a journal, where this machine is; else blank."""
    moment = _moment(utc)
    return "" if moment is None else moment.astimezone().isoformat(" ", "minutes")[:16]


def world_time(utc: str) -> str:
    """``2026-11-30 14:20 UTC``, the same wherever a document is made; else blank."""
    moment = _moment(utc)
    if moment is None:
        return ""
    return f"{moment.astimezone(UTC).isoformat(' ', 'minutes')[:16]} UTC"


def ago(utc: str, now: float) -> str:
    """``just now``, ``5 min ago``, ``2 h ago``, ``3 days ago``; the day where that is long ago.

    ``now`` is in seconds since the epoch.
    """
    moment = _moment(utc)
    if moment is None:
        return ""
    seconds = now - moment.timestamp()
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{int(seconds // 60)} min ago"
    if seconds < 86400:
        return f"{int(seconds // 3600)} h ago"
    days = int(seconds // 86400)
    if days < 30:
        return "1 day ago" if days == 1 else f"{days} days ago"
    return local_time(utc)[:10]


def human_size(size: int) -> str:
    """``950 bytes``, ``1.2 kB``, ``3.4 MB``."""
    if size < 1000:
        return "1 byte" if size == 1 else f"{size} bytes"
    value = float(size)
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 999.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1000:.1f} TB"


def seconds_of(age: str) -> float | None:
    """Of ``30d``, ``12h``, ``2w``, ``45m``; None for what is no such age."""
    found = re.fullmatch(r"([0-9]{1,6})([mhdw])", age.strip().lower())
    return float(int(found[1]) * _UNITS[found[2]]) if found else None


def _moment(utc: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(utc)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        moment.astimezone(), moment.astimezone(UTC)  # the ends of the calendar have neither
    except (ValueError, OverflowError):
        return None
    return moment
