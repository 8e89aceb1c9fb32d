"""``python -m claw``."""

from __future__ import annotations

from claw.cli.main import entry

if __name__ == "__main__":
    entry()
