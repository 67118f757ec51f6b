"""How finely and how accurately the experiments are computed."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Plan:
    """The protocol, the data sets per sampled point, the seed, and whether the grids are coarse (`quick`).

    >>> Plan(quick=True).ns
    [1000.0, 1300.0, 1800.0, 2200.0, 2600.0, 3000.0, 4000.0, 5000.0]
    """

    protocol: str = "exact"
    datasets: int = 200_000
    quick: bool = False
    seed: int = 0

    def grid(self, low: float, high: float, step: float) -> list[float]:
        """Values from low to high; four times as far apart when quick.

        >>> Plan().grid(20, 100, 20), Plan(quick=True).grid(20, 100, 20)
        ([20.0, 40.0, 60.0, 80.0, 100.0], [20.0, 100.0])
        """
        wide = step * 4 if self.quick else step
        return [
            float(value) for value in np.round(np.arange(low, high + wide / 2, wide), 10) if value <= high
        ]

    @property
    def ns(self) -> list[float]:
        """The N axis from 1000 to 5000; when quick, the values that the claims name and a few more."""
        if self.quick:
            return [1000.0, 1300.0, 1800.0, 2200.0, 2600.0, 3000.0, 4000.0, 5000.0]
        return self.grid(1000, 5000, 100)

    @property
    def gammas(self) -> list[float]:
        """The γ axis from 0.05 to 2, denser at small γ."""
        fine = [*np.arange(0.05, 0.5, 0.05), *np.arange(0.5, 1.0, 0.1), *np.arange(1.0, 2.01, 0.2)]
        values = [round(float(value), 10) for value in fine]
        return [*values[:-1:3], values[-1]] if self.quick else values
