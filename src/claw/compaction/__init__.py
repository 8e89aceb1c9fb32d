"""Making room in a conversation that outgrows the model's window."""
