"""Models: each one a `ModelClient`, by dialect or by rules."""
