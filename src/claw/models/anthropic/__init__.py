"""The Anthropic Messages dialect: pure encode and decode, and a thin client."""
