"""Commands for research: privacy curves, levels, simulations, bounds, the reproduction."""
