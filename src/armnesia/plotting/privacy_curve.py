"""A picture of the privacy curve."""

from typing import TYPE_CHECKING

import numpy as np

from armnesia.plotting.style import COLOURS, panel_grid
from armnesia.privacy import PrivacyCurve

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def picture_of_curve(curve: PrivacyCurve) -> "Figure":
    """Draw the exact δ(ε) of Gaussian noise, down to δ = 10⁻¹².

    >>> from armnesia.privacy import privacy_curve
    >>> picture_of_curve(privacy_curve(0.5)).axes[0].get_ylabel()
    'δ(ε), exact'
    """
    top = curve.epsilon(1e-12)
    epsilon = np.linspace(0, top if 0 < top < np.inf else 1.0, 400)
    figure, [[axis]] = panel_grid(1, 1, width=6, height=4)
    axis.semilogy(epsilon, np.maximum(curve.delta(epsilon), 1e-300), color=COLOURS[0], linewidth=2)
    axis.set_xlabel("ε")
    axis.set_ylabel("δ(ε), exact")
    axis.set_title(f"Privacy of Gaussian noise, γ = σ/Δ = {curve.gamma:g}", loc="left")
    return figure
