"""Values and arithmetic: nothing here knows of learners, logs or vaults."""
