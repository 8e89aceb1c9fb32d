"""Command hooks: how they are declared, what their output says, and how they are run."""
