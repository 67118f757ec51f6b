"""Logs in CSV and Parquet files, read by DuckDB."""
