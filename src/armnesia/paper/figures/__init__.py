"""Figures 1 to 3 and Table 2 of the paper."""
