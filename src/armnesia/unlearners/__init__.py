"""Every algorithm that forgets, the paper's and ours, one file each."""

from armnesia.unlearners.adaptive import Adaptive
from armnesia.unlearners.base import Branch, Release, Unlearner
from armnesia.unlearners.frozen import FrozenRollback
from armnesia.unlearners.gaussian import Gaussian
from armnesia.unlearners.mixing import Mixing
from armnesia.unlearners.multi_source import MultiSource
from armnesia.unlearners.rollback import ImitationRollback, Rollback
from armnesia.unlearners.strict_adaptive import StrictAdaptive
from armnesia.unlearners.tilt import Tilt

UNLEARNERS: dict[str, type[Unlearner]] = {
    unlearner.name: unlearner
    for unlearner in (
        Rollback,
        Gaussian,
        Adaptive,
        Mixing,
        MultiSource,
        ImitationRollback,
        FrozenRollback,
        StrictAdaptive,
        Tilt,
    )
}
"""Every unlearner by its name: feeds the command line and the generic tests."""

__all__ = [
    "UNLEARNERS",
    "Adaptive",
    "Branch",
    "FrozenRollback",
    "Gaussian",
    "ImitationRollback",
    "Mixing",
    "MultiSource",
    "Release",
    "Rollback",
    "StrictAdaptive",
    "Tilt",
    "Unlearner",
]
