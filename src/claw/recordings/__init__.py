"""Recordings: every session is one, and this room compares and plays them."""
