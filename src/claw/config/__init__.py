"""Configuration: where it lives, what it may say, and where each value came from."""
