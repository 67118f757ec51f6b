"""Values and arithmetic that every other package uses: statistics, requests, errors, randomness."""
