"""The bounds of the paper, drawn over its settings."""
