"""Tests of the part on many decisions."""
