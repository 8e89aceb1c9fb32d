"""The turn engine. It touches no operating system: only values and ports."""
