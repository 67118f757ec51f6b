"""Every algorithm of the paper that forgets, one file each."""

from armnesia.unlearners.adaptive import Adaptive
from armnesia.unlearners.base import Branch, Release, Unlearner
from armnesia.unlearners.gaussian import Gaussian
from armnesia.unlearners.mixing import Mixing
from armnesia.unlearners.multi_source import MultiSource
from armnesia.unlearners.rollback import ImitationRollback, Rollback

UNLEARNERS: dict[str, type[Unlearner]] = {
    unlearner.name: unlearner
    for unlearner in (
        Rollback,
        Gaussian,
        Adaptive,
        Mixing,
        MultiSource,
        ImitationRollback,
    )
}
"""Every unlearner by its name: feeds the command line and the generic tests."""

__all__ = [
    "UNLEARNERS",
    "Adaptive",
    "Branch",
    "Gaussian",
    "ImitationRollback",
    "Mixing",
    "MultiSource",
    "Release",
    "Rollback",
    "Unlearner",
]
