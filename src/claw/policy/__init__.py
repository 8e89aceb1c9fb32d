"""Policy: what a call may do, what hooks say of it, and how foreign text is shown."""
