"""The sensitivity of a score is exact: the largest move over every possible log, found by trying them all."""

import math
from itertools import product

import numpy as np
import pytest

from armnesia.learners import LCB

LARGEST = 7


def score(rewards: tuple[int, ...], log_term: float) -> float:
    """One arm's score by Algorithm 1, from its rewards."""
    if not rewards:
        return -1.0
    return sum(rewards) / len(rewards) - math.sqrt(log_term / (2 * len(rewards)))


def largest_move(n: int, k: int, log_term: float) -> float:
    """max |f(D) − f(D∖U)| over all rewards in {0, 1} of n records of which the first k are deleted."""
    return max(
        abs(score(rewards, log_term) - score(rewards[k:], log_term)) for rewards in product((0, 1), repeat=n)
    )


@pytest.mark.parametrize("n_actions", [1, 5])
# From no penalty at all (m = τ = 1) to one so large that an emptied arm rises to −1.
@pytest.mark.parametrize("confidence", [1.0, 0.3, 1e-2, 1e-9])
@pytest.mark.parametrize("n", range(LARGEST + 1))
def test_sensitivity_is_the_largest_move_over_all_logs(n: int, confidence: float, n_actions: int) -> None:
    log_term = math.log(n_actions / confidence)
    exact = [largest_move(n, k, log_term) for k in range(n + 1)]
    claimed = LCB(confidence=confidence).sensitivity([n] * (n + 1), list(range(n + 1)), n_actions)
    assert claimed.tolist() == pytest.approx(exact, abs=1e-14)


def test_rewards_between_the_ends_move_a_score_no_further() -> None:
    """Thirds as well as 0 and 1: the score is linear in each reward, so the ends are the worst."""
    log_term, n = math.log(2 / 0.1), 5
    learner = LCB(confidence=0.1)
    for k in range(n + 1):
        moves = [
            abs(
                (sum(d) / n - math.sqrt(log_term / (2 * n)))
                - (-1.0 if k == n else sum(d[k:]) / (n - k) - math.sqrt(log_term / (2 * (n - k))))
            )
            for d in product((0, 1 / 3, 2 / 3, 1), repeat=n)
        ]
        assert float(learner.sensitivity(n, k, 2)) == pytest.approx(max(moves), abs=1e-14)


def test_the_search_notices_the_sensitivity_of_the_mean_alone() -> None:
    """The planted fault: k/N forgets that the penalty moves too."""
    assert largest_move(6, 2, math.log(50)) > 2 / 6 + 0.1


def test_deleting_nothing_moves_nothing_and_arms_are_independent() -> None:
    learner = LCB(confidence=0.05)
    moves = learner.sensitivity(np.array([[0, 4], [7, 7]]), np.array([[0, 4], [0, 3]]), n_actions=2)
    assert moves[0, 0] == moves[1, 0] == 0
    assert moves[0, 1] == learner.sensitivity(4, 4, 2)
    assert moves[1, 1] == learner.sensitivity(7, 3, 2)


def test_it_is_below_the_paper_s_bound_where_that_bound_is_proved() -> None:
    """3k/(2N) is an upper bound for k ≤ N − √(N·L/2), and is not one beyond."""
    n, m, confidence = 200, 5, 1 / 1000
    learner, log_term = LCB(confidence=confidence), math.log(m / confidence)
    deleted = np.arange(1, n)
    exact, paper = learner.sensitivity(np.full(n - 1, n), deleted, m), 3 * deleted / (2 * n)
    proved = deleted <= n - math.sqrt(n * log_term / 2)
    assert 0 < proved.sum() < n - 1
    assert (exact[proved] <= paper[proved] + 1e-12).all()
    assert (exact[~proved] > paper[~proved]).any()
