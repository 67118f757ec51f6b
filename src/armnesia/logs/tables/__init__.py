"""Logs in tables of databases: SQLite, PostgreSQL and Spark."""
