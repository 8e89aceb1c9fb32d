"""What a turn looks like: each printer is a listener that folds over its events."""
