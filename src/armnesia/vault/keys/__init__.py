"""The keys of a vault, and what is made with them: digests, signatures, private files."""
