"""Commands on a vault."""
