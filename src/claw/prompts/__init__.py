"""What the model is told first: the system prompt, instruction files, the environment."""
