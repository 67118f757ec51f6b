"""A comparison of tilt's predictives."""
