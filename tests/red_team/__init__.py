"""Attacks on a vault, each with a verdict: caught, refused, or provably without effect.

`make red-team` runs them all at length and prints a table; the tests run a few of each.
"""
