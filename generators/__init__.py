"""Random problems: each row a pure function of (task, settings, seed, row)."""
