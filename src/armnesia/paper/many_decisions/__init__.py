"""One person in many decisions."""
