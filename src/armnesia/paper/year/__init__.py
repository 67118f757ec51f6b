"""A year of monthly deletions."""
