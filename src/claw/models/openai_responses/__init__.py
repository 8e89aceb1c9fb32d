"""The OpenAI Responses dialect: pure encode and decode, and a thin client."""
