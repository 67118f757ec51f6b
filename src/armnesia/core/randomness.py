"""The only module that makes randomness.

Simulation uses a seeded numpy generator. What is released to the world uses the operating system's
source, and is drawn exactly: the weights are turned into integers and an integer below their total is
drawn, so that a probability of 2⁻⁶⁰ is 2⁻⁶⁰ and an arm of probability 0 is never drawn. (Comparing a
53-bit float with cumulative sums would add an unclaimed δ of about 2⁻⁵⁰.)
"""

import secrets
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from armnesia.core.errors import InvalidInputError


def generator(random_state: int | np.random.Generator | None) -> np.random.Generator:
    """Make the generator for simulation: a seed, a generator to pass through, or None for a fresh one.

    >>> generator(7).integers(100) == generator(7).integers(100)
    np.True_
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(random_state)


def generators(seed: int, number: int) -> list[np.random.Generator]:
    """Make independent generators from one seed: each block of a simulation has its own, wherever it runs.

    >>> [int(rng.integers(100)) for rng in generators(7, 2)]
    [30, 68]
    """
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(number)]


def secret_bytes(number: int) -> bytes:
    """Make key material, from the operating system.

    >>> len(secret_bytes(32))
    32
    """
    return secrets.token_bytes(number)


def draw_index(weights: Sequence[float]) -> int:
    """Draw an index with probability exactly proportional to its weight, from the operating system.

    >>> draw_index([0.0, 1.0, 0.0])
    1
    """
    if not all(0 <= weight < float("inf") for weight in weights) or not any(weights):
        raise InvalidInputError(f"weights must be finite, not negative and not all zero; got {list(weights)}")
    exact = [Fraction(float(weight)) for weight in weights]
    denominator = max(fraction.denominator for fraction in exact)  # all are powers of two
    integers = [int(fraction * denominator) for fraction in exact]
    drawn = secrets.randbelow(sum(integers))
    for index, integer in enumerate(integers):
        drawn -= integer
        if drawn < 0:
            return index
    raise AssertionError("unreachable: the draw is below the total")
