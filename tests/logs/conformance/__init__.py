"""The conformance table: every kind of source × every case, against a loop in plain Python."""
