"""The unlearners of the paper and further ones, one module each."""

from armnesia.unlearners.adaptive import Adaptive
from armnesia.unlearners.base import Branch, Release, Unlearner
from armnesia.unlearners.centred_gaussian import CentredGaussian
from armnesia.unlearners.frozen_rollback import FrozenRollback
from armnesia.unlearners.gaussian import Gaussian
from armnesia.unlearners.joint import JointRelease, release_jointly
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
        CentredGaussian,
        Adaptive,
        Mixing,
        MultiSource,
        ImitationRollback,
        FrozenRollback,
        StrictAdaptive,
        Tilt,
    )
}
"""Every unlearner by its name, for the command line, the vault and the tests."""

Unlearner.registered = UNLEARNERS

__all__ = [
    "UNLEARNERS",
    "Adaptive",
    "Branch",
    "CentredGaussian",
    "FrozenRollback",
    "Gaussian",
    "ImitationRollback",
    "JointRelease",
    "Mixing",
    "MultiSource",
    "Release",
    "Rollback",
    "StrictAdaptive",
    "Tilt",
    "Unlearner",
    "release_jointly",
]
