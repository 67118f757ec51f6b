"""Beyond the paper: every method at the same exact (ε, δ)."""
