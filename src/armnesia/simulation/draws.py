"""Evaluation by draws, of whole data sets or of count vectors, whose number is decided before looking.

A pilot decides how many draws are needed and, in the distribution model, which way is cheaper. Its draws are
not used in the estimate: stopping when the error looks small would prefer estimates that missed rare losses.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.core.errors import UnsupportedError
from armnesia.core.randomness import generator, generators
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.simulation.case import Case
from armnesia.simulation.count_vectors import Proposal, policy_of
from armnesia.simulation.drawing import Drawn, draw_data_sets
from armnesia.simulation.estimates import (
    REPLICATES,
    Evaluation,
    Summary,
    WeightedVectors,
    gathered,
    summarised,
    weighted,
)
from armnesia.simulation.models import DistributionModel
from armnesia.simulation.parallel import Workers
from armnesia.unlearners import Unlearner
from armnesia.unlearners.base import decision_distribution

_BLOCK = 10_000
_DEFAULT_DATASETS = 100_000
_PILOT_DATASETS, _FEWEST_DATASETS, _MOST_DATASETS = 2000, 10_000, 2_000_000
_PILOT_REPLICATES, _PILOT_VECTORS = 8, 4
_FEWEST_VECTORS, _MOST_VECTORS = 64, 256
"""In each of the replicates. With fewer, many seeds miss the rare counts that carry a rare loss."""
_SAFETY = 1.1
"""More draws than the pilot asks for: its error is itself an estimate."""
_UNEVEN = 0.5
"""The relative spread over count vectors from which on rare ones are drawn more often."""
_Block = dict[str, Summary]
_R = TypeVar("_R")


@dataclass(frozen=True)
class Draws:
    """Draws for a case, on some workers."""

    case: Case
    workers: Workers
    seed: int
    accuracy: float
    progress: Callable[[int, int], None] | None

    def evaluations(self, protocol: str, datasets: int | None) -> dict[str, Evaluation]:
        """All methods, on the same draws."""
        if protocol == "exact":
            return self._by_vectors(datasets)
        if datasets is not None or protocol == "sampled":
            return self._sampled(datasets or _DEFAULT_DATASETS)
        needed = self._datasets_needed()
        if self.case.has_vectors and math.isfinite(self.case.cost):
            try:
                found = self._by_vectors_if_better(needed)
            except UnsupportedError:
                found = None
            if found is not None:
                return found
        return self._sampled(int(min(needed, _MOST_DATASETS)))

    def _datasets_needed(self) -> float:
        """Data sets for the accuracy asked, by a pilot; infinite if it saw no loss."""
        (rng,) = self._pilots(1)
        pilot = _sampled_block(self.case, _PILOT_DATASETS, rng)
        needed = float(_FEWEST_DATASETS)
        for p, variance, _ in pilot.values():
            loss = float(p @ self.case.environment.gaps)
            asked = _SAFETY * variance / (self.accuracy * loss) ** 2 if loss > 0 else math.inf
            needed = max(needed, asked)
        return needed

    def _pilots(self, number: int) -> list[np.random.Generator]:
        """Generators that no block has."""
        return generators(self.seed, 1)[0].spawn(number)

    def _sampled(self, datasets: int) -> dict[str, Evaluation]:
        n_blocks = max(2, math.ceil(datasets / _BLOCK))
        size = math.ceil(datasets / n_blocks)
        found = self._run(partial(_sampled_block, self.case, size), n_blocks)
        return {
            key: gathered([block[key] for block in found], self.case.environment, size)
            for key in self.case.methods
        }

    def _run(self, work: Callable[[np.random.Generator], _R], number: int) -> list[_R]:
        found = []
        for result in self.workers.map(work, generators(self.seed, number)):
            found.append(result)
            if self.progress is not None:
                self.progress(len(found), number)
        return found

    def _by_vectors(self, datasets: int | None) -> dict[str, Evaluation]:
        """Exact given count vectors, `datasets` of them but not too few."""
        if datasets is not None:
            return self._weighted(self._proposal(), max(_FEWEST_VECTORS, math.ceil(datasets / REPLICATES)))
        proposal, size = self._fitted()
        return self._weighted(proposal, int(min(size, _MOST_VECTORS)))

    def _by_vectors_if_better(self, needed: float) -> dict[str, Evaluation] | None:
        """The same; None if sampling reaches the accuracy asked sooner."""
        fewest = _PILOT_REPLICATES * _PILOT_VECTORS + REPLICATES * _FEWEST_VECTORS
        if needed <= 2 * fewest * self.case.cost:
            return None
        proposal, size = self._fitted()
        if not self._is_better(size, needed):
            return None
        return self._weighted(proposal, int(min(size, _MOST_VECTORS)))

    def _proposal(self) -> Proposal:
        model = self.case.model
        assert isinstance(model, DistributionModel)
        arms = [self.case.environment.best, *np.flatnonzero(self.case.requested).tolist()]
        return Proposal(model, tuple(dict.fromkeys(arms)))

    def _is_better(self, size: float, needed: float) -> bool:
        """Whether count vectors are the better way: less time, or a smaller error if neither is enough."""
        missing = max(1.0, size / _MOST_VECTORS), max(1.0, needed / _MOST_DATASETS)
        if missing[0] == missing[1]:
            return REPLICATES * size * self.case.cost < needed
        return missing[0] < missing[1]

    def _fitted(self) -> tuple[Proposal, float]:
        """The proposal with laws that draw the vectors with large losses, and the vectors per replicate."""
        proposal = self._proposal()
        work = partial(_vectors_block, self.case, proposal, _PILOT_VECTORS)
        pilot = list(self.workers.map(work, self._pilots(1 + _PILOT_REPLICATES)[1:]))
        vectors = np.concatenate([block.vectors for block in pilot])
        weights = np.concatenate([block.weights for block in pilot])
        size, fitted = float(_FEWEST_VECTORS), []
        for key in self.case.methods:
            found = weighted(pilot, key, self.case.environment)
            if found.suboptimality <= 0:
                return proposal, math.inf
            losses = np.concatenate([block.released[key] for block in pilot]) @ self.case.environment.gaps
            spread = weights @ (losses - found.suboptimality) ** 2 / weights.sum()
            if spread > (_UNEVEN * found.suboptimality) ** 2:
                fitted.append(policy_of(vectors, weights * losses))
            wanted = self.accuracy * found.suboptimality * math.sqrt(REPLICATES / _PILOT_VECTORS)
            size = max(size, _SAFETY * found.blocks.var(ddof=1) / wanted**2)
        return replace(proposal, fitted=tuple(fitted)), size

    def _weighted(self, proposal: Proposal, size: int) -> dict[str, Evaluation]:
        blocks = self._run(partial(_vectors_block, self.case, proposal, size), REPLICATES)
        return {key: weighted(blocks, key, self.case.environment) for key in self.case.methods}


def _vectors_block(case: Case, proposal: Proposal, size: int, rng: np.random.Generator) -> WeightedVectors:
    vectors, weights = proposal.draw(rng, size)
    released = {key: case.released(key, vectors) for key in case.methods}
    return WeightedVectors(vectors, weights, case.short(vectors), released)


@runtime_checkable
class ChoosesPart(Protocol):
    """An unlearner that rolls back a random part U′ of the request first, as mixing does."""

    def rolled_back_first(self, deleted: IntArray) -> IntArray:
        """The size of U′ per arm."""

    def with_rolled_back(self, part: DeletionRequest) -> Unlearner:
        """The unlearner with U′ chosen."""


def _sampled_block(case: Case, size: int, rng: np.random.Generator) -> _Block:
    drawn = draw_data_sets(case.environment, case.model, case.request, rng, size)
    part_seed = int(rng.integers(2**63))  # every mixing gets the same U′, whatever else is evaluated
    block: _Block = {}
    for key, (unlearner, learner) in case.methods.items():
        if unlearner is None:
            p = decision_distribution(learner, drawn.statistics)
        else:
            method = unlearner
            if isinstance(unlearner, ChoosesPart) and (drawn.request.binary or drawn.deleted_prefix_sums):
                method = _with_drawn_part(unlearner, drawn, generator(part_seed))
            p = method.release(learner, drawn.statistics, drawn.request, case.budget).probabilities
        block[key] = summarised(p, case.environment, drawn.short_share)
    return block


def _with_drawn_part(unlearner: ChoosesPart, drawn: Drawn, rng: np.random.Generator) -> Unlearner:
    """Draw the part U′ that is rolled back first, which is cheaper than to integrate over it."""
    records = drawn.request.records
    first = unlearner.rolled_back_first(records.counts)
    if drawn.request.binary:
        ones = records.sums // UNIT
        part = rng.hypergeometric(ones, records.counts - ones, first) * UNIT
    else:  # the deleted records are in random order, so the first of them are a uniform choice
        part = np.zeros_like(first)
        for arm, sums in drawn.deleted_prefix_sums.items():
            part[:, arm] = np.take_along_axis(sums, first[:, arm, None], axis=1)[:, 0]
    chosen = DeletionRequest(ArmStatistics(records.actions, first, part), drawn.request.binary)
    return unlearner.with_rolled_back(chosen)
