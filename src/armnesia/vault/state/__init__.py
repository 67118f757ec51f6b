"""What a vault holds: its sealed state, its records, its suppression list."""
