"""Tilt's predictives compared."""
