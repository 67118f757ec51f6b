"""Commands on a log: decide, unlearn, audit, compare."""
