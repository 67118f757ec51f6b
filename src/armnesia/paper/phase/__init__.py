"""The phase diagram: which branch is better where."""
