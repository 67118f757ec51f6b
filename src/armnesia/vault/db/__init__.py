"""The databases a vault can be kept in, their schema, and all SQL of the vault."""
