"""Logs in memory: dataframes, mappings of columns and arrays."""
