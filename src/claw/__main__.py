"""``python -m claw``."""

from __future__ import annotations

import signal

if __name__ == "__main__":
    # While everything loads, Ctrl-C ends the process without a word.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from claw.cli.main import entry

    entry()
