"""The only module that makes randomness.

Simulation uses a seeded numpy generator. What is released to the world uses the operating system's
source, and is drawn exactly: the weights are turned into integers and an integer below their total is
drawn, so that a probability of 2⁻⁶⁰ is 2⁻⁶⁰ and an arm of probability 0 is never drawn. (Comparing a
53-bit float with cumulative sums would add an unclaimed δ of about 2⁻⁵⁰.)
"""

import secrets
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import listed

_BLOCK = 512
"""Integers of 53 bits that are added at once: their sum has at most 62 bits."""


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


def draw_index(weights: ArrayLike) -> int:
    """Draw an index with probability exactly proportional to its weight, from the operating system.

    A float is an integer times a power of two. One integer is drawn below the total over the common
    denominator. It selects a power of two, and then an index among the weights that have it, whose integers
    have 53 bits at most. A million weights take a tenth of a second.

    >>> draw_index([0.0, 1.0, 0.0])
    1
    """
    given = np.asarray(weights, dtype=np.float64)
    if not (np.isfinite(given) & (given >= 0)).all() or not given.any():
        raise InvalidInputError(
            f"weights must be finite, not negative and not all zero; got {listed(given.tolist())}"
        )
    positive = np.flatnonzero(given)
    integers, powers = _integers_and_powers(given[positive])
    order = np.argsort(powers, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(powers[order])) + 1)
    # Weights that are whole numbers are used unchanged: the denominator is at least 1.
    lowest = min(int(powers[groups[0][0]]), 0)
    shifts = [int(powers[group[0]]) - lowest for group in groups]
    blocks = [_block_sums(integers[group]) for group in groups]
    totals = [sum(sums) << shift for sums, shift in zip(blocks, shifts, strict=True)]
    group, drawn = _select(totals, secrets.randbelow(sum(totals)))
    block, drawn = _select(blocks[group], drawn >> shifts[group])
    members = groups[group][block * _BLOCK : (block + 1) * _BLOCK]
    within = np.searchsorted(np.cumsum(integers[members]), drawn, side="right")
    return int(positive[members[within]])


def _integers_and_powers(weights: FloatArray) -> tuple[IntArray, NDArray[np.int16]]:
    """Odd integers and powers of two whose products are the weights, exactly.

    >>> _integers_and_powers(np.array([0.75, 4.0]))
    (array([3, 1]), array([-2,  2], dtype=int16))
    """
    mantissas, exponents = np.frexp(weights)
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    lowest_bit = whole & -whole
    zeros = np.frexp(lowest_bit.astype(np.float64))[1] - 1
    return whole >> zeros, (exponents - 53 + zeros).astype(np.int16)


def _block_sums(integers: IntArray) -> list[int]:
    """The sums of successive blocks, which int64 holds, as Python integers."""
    starts = np.arange(0, integers.size, _BLOCK)
    return [int(total) for total in np.add.reduceat(integers, starts)]


def _select(totals: Sequence[int], drawn: int) -> tuple[int, int]:
    """The place whose share of the integers below the sum contains `drawn`, and how far into it."""
    for place, total in enumerate(totals):
        if drawn < total:
            return place, drawn
        drawn -= total
    raise AssertionError("unreachable: the draw is below the total")
