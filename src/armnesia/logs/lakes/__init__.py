"""Logs in Delta and Iceberg tables: their own libraries list the files of a version, DuckDB reads them."""
