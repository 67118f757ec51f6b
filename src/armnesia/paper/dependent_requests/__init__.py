"""Requests that depend on rewards, which the paper excludes."""
