"""The privacy curve as a picture."""

from typing import TYPE_CHECKING

import numpy as np

from armnesia.plotting.style import COLOURS, panels
from armnesia.privacy import PrivacyCurve

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def picture_of_curve(curve: PrivacyCurve) -> "Figure":
    """δ over ε, down to δ = 10⁻¹²."""
    top = curve.epsilon(1e-12)
    epsilon = np.linspace(0, top if 0 < top < np.inf else 1.0, 400)
    figure, (axis,) = panels(1, width=6, height=4)
    axis.semilogy(epsilon, np.maximum(curve.delta(epsilon), 1e-300), color=COLOURS[0], linewidth=2)
    axis.set_xlabel("ε")
    axis.set_ylabel("δ(ε), exact")
    axis.set_title(f"Privacy of Gaussian noise, γ = σ/Δ = {curve.gamma:g}", loc="left")
    return figure
