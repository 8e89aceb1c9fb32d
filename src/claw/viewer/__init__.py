"""A session as one self-contained HTML page, for people to read anywhere."""
