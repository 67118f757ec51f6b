"""Logs in tables of databases: SQLite and PostgreSQL."""
