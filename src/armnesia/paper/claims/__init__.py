"""The quantitative claims of the paper, checked."""
