"""The OpenAI Chat Completions dialect: pure encode and decode, and a thin client."""
