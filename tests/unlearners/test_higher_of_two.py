"""The higher of two arms for many data sets: by leads, by search and by trying all pairs of values."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from armnesia import KLLCB, LCB, ArmStatistics
from armnesia.core.units import UNIT
from armnesia.learners import MeanAndCountLearner
from armnesia.unlearners.higher_of_two import NO_LEAD, higher_of_two, leads
from armnesia.unlearners.predictive import flat

Floats = NDArray[np.float64]
VALUES, ROWS = 6, 400


def by_all_pairs(scores: Floats, chances: Floats, rival: Floats, arms: NDArray[np.int64]) -> Floats:
    """Every value of the first arm with every value of the second; ties go to the arm in front."""
    wins = np.zeros((3, ROWS))
    for row, mine, other in product(range(ROWS), range(VALUES), range(VALUES)):
        drawn = (scores[mine, 0, row], scores[other, 1, row], rival[row])
        winner = max(range(3), key=lambda a: (drawn[a], -arms[a, row]))
        wins[winner, row] += chances[mine, 0, row] * chances[other, 1, row]
    return wins


def random_case(seed: int, *, with_rival: bool) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
    """Scores that rise by 1 each; half of the data sets have whole scores, so that there are many ties."""
    rng = np.random.default_rng(seed)
    lowest = rng.integers(-9, 10, size=(2, ROWS)) + rng.random((2, ROWS)) * (np.arange(ROWS) % 2)
    scores = lowest + np.arange(VALUES)[:, None, None]
    chances = np.moveaxis(rng.dirichlet(np.ones(VALUES), size=(2, ROWS)), -1, 0)
    rival = rng.integers(-9, 15, size=ROWS).astype(np.float64) if with_rival else np.full(ROWS, -np.inf)
    arms = np.argsort(rng.random((3, ROWS)), axis=0)
    arms[:2] = np.sort(arms[:2], axis=0)  # the first of two arms is in front of the second
    return scores, chances, rival, arms


def leads_of(scores: Floats) -> NDArray[np.int64]:
    return leads(scores[0], scores[-1], np.full((2, ROWS), VALUES - 1))


@pytest.mark.parametrize("with_rival", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_by_leads_and_by_search_it_is_what_all_pairs_give(seed: int, with_rival: bool) -> None:
    """Wrong leads must be noticed: they are estimates."""
    scores, chances, rival, arms = random_case(seed, with_rival=with_rival)
    expected, right = by_all_pairs(scores, chances, rival, arms), leads_of(scores)
    assert (right < NO_LEAD).all()
    wrong = right + np.random.default_rng(seed).integers(-2, 3, size=ROWS)
    for lead in (right, np.full(ROWS, NO_LEAD), wrong, np.where(np.arange(ROWS) % 3, right, NO_LEAD)):
        order = np.argsort(lead, kind="stable")
        found = higher_of_two(
            scores[..., order], chances[..., order], rival[order], arms[:, order], lead[order]
        )
        np.testing.assert_allclose(found, expected[:, order], rtol=0, atol=1e-14)


def test_a_lead_is_the_number_of_values_not_above_the_lowest_of_the_first_arm() -> None:
    scores, *_ = random_case(7, with_rival=False)
    lead = leads_of(scores)
    many = scores[0, 1] + np.arange(40)[:, None]
    np.testing.assert_array_equal(lead[lead >= 0], (many <= scores[0, 0]).sum(axis=0)[lead >= 0])
    behind = scores[0, 0] + np.arange(40)[:, None]
    reached_at = (behind < scores[0, 1]).sum(axis=0)
    np.testing.assert_array_equal(lead[lead < 1], 1 - reached_at[lead < 1])
    assert (lead > 1).sum() > 50 < (lead < 1).sum()


def test_arms_whose_scores_rise_by_other_steps_have_no_lead() -> None:
    lowest, highest = np.zeros((2, 3)), np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    steps = np.array([[4, 4, 4], [4, 5, 4]])
    assert leads(lowest, highest, steps).tolist() == [1, NO_LEAD, NO_LEAD]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n_arms", [2, 3])
@pytest.mark.parametrize("learner", [LCB(confidence=0.1), KLLCB(confidence=0.1), "frozen"])
def test_arms_with_equally_many_records_are_judged_as_one_by_one(
    n_arms: int, learner: MeanAndCountLearner | str
) -> None:
    """Sums in tenths, so that scores tie exactly or up to rounding; the third arm is untouched."""
    rng, rows = np.random.default_rng(8), 300
    labels, counts = tuple(range(n_arms)), np.full((rows, n_arms), 30)
    sums = rng.integers(60, 150, size=counts.shape) * (UNIT // 10)
    shape = np.full_like(counts, 8)
    shape[:, 2:], shape[::7, 1] = 0, 5
    counts[:, 1] += 8 - shape[:, 1]  # equally many before the deletion
    frozen = rng.choice([0, 10], size=counts.shape)

    def judge(row: int | slice) -> Floats:
        used = LCB(confidence=0.1).with_frozen_penalty(frozen[row]) if isinstance(learner, str) else learner
        return flat(used, ArmStatistics(labels, counts[row], sums[row]), shape[row])

    together = judge(slice(None))
    np.testing.assert_allclose(together, [judge(row) for row in range(rows)], rtol=0, atol=1e-13)
    assert ((together > 0.01) & (together < 0.99)).any(axis=-1).sum() > 100
