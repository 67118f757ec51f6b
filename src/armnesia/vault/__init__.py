"""The persistent system: a log that can forget people, with a ledger and certificates."""
