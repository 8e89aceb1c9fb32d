"""The headless, deterministic driver: many turns without a network, a key or a random number."""
