"""The paper's bounds beside exact values."""
