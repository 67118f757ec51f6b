"""What can be done with a vault: one operation per file, each one write transaction."""
