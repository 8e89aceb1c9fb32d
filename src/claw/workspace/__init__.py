"""The local machine behind ports: files beneath a root, processes, time."""
