"""Values: what everything in claw is made of. Frozen, and without any I/O."""
