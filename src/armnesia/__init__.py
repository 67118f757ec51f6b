"""armnesia: offline bandit decisions that can forget."""
