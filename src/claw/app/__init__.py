"""The composition root: the one room that knows all others. Begin with `furnish.py`."""
