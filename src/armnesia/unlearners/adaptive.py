"""The paper's main algorithm: noise or rollback, whichever has the smaller bound."""

from dataclasses import dataclass
from typing import ClassVar

from armnesia.unlearners.multi_source import MultiSource


@dataclass(frozen=True)
class Adaptive(MultiSource):
    """Algorithm 2: if the request is for the served arm and γ < γ₀, add noise; otherwise roll back.

    It is the single-source case of `MultiSource` (N_min = N(a₀), k_max = k); for a request of several arms
    it is that algorithm. `Adaptive.as_in_the_paper()` takes the paper's threshold, its factor 1.3 and its
    sensitivity; the defaults take the exact balance point and the exact sensitivity.

    >>> from armnesia import LCB, ArmStatistics, Budget, DeletionRequest
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1] * 50 + [0] * 50})
    >>> request = DeletionRequest.from_rewards({"A": [1] * 10, "B": []})
    >>> release = Adaptive().release(
    ...     LCB().bind(statistics), statistics, request, Budget(epsilon=1.0, delta=1e-5)
    ... )
    >>> release.probabilities, release.branch
    (array([1., 0.]), 'rollback (gamma is not below the threshold)')
    """

    name: ClassVar[str] = "adaptive"
