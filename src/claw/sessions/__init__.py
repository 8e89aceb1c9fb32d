"""Sessions: the journal, its one parser, the index of a project's sessions, and blobs."""
