"""Learners of the registry, made ready for any statistics."""

from typing import Any

from armnesia import LEARNERS, Learner
from armnesia.core.parameters import build, parameters_of


def bound_learner(name: str, confidence: float = 0.2, **options: Any) -> Learner:
    """The learner with these options, and this confidence if it has one."""
    kind = LEARNERS[name]
    if any(parameter.name == "confidence" for parameter in parameters_of(kind)):
        options["confidence"] = confidence
    return build(kind, options)
