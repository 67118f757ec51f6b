"""Rollback is deleting the rows and counting again: the claim of docs/when-not-to-use.md, exactly."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia import LEARNERS, ArmStatistics, Budget, Learner, Rollback, datasets, read_log
from armnesia.core.units import UNIT
from armnesia.datasets.nyc_flights import flights_path
from armnesia.learners import LCB
from armnesia.vault import Configuration, Vault
from tests.learners.bound_learners import bound_learner
from tests.quick import examples

NOTHING = Budget(epsilon=0.0, delta=0.0)
ACTIONS = ("A", "B", "C")
Row = tuple[str, float, str]

rows_of_people = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.floats(0, 1), st.sampled_from("abcdef")), min_size=1, max_size=60
)


def columns(rows: list[Row]) -> dict[str, list[Any]]:
    return {
        "action": [action for action, _, _ in rows],
        "reward": [reward for _, reward, _ in rows],
        "user": [user for _, _, user in rows],
    }


def counted_by_hand(rows: list[Row]) -> tuple[list[int], list[int], list[int]]:
    """Records, reward units and their squares per arm; a reward is rounded to 10⁻⁹, half to even."""
    counts, sums, squares = [0] * 3, [0] * 3, [0] * 3
    for action, reward, _ in rows:
        counts[ACTIONS.index(action)] += 1
        sums[ACTIONS.index(action)] += round(reward * UNIT)
        squares[ACTIONS.index(action)] += round(reward * UNIT) ** 2
    return counts, sums, squares


@pytest.mark.parametrize("name", LEARNERS)
@examples(40)
@given(rows_of_people, st.sets(st.sampled_from("abcdef"), min_size=1))
def test_rollback_is_the_decision_of_the_rows_that_are_left(
    name: str, rows: list[Row], leaving: set[str]
) -> None:
    learner: Learner = bound_learner(name, 0.05)
    log = read_log(columns(rows), actions=ACTIONS)
    asked = [user for user in sorted(leaving) if user in log.users()]
    if not asked:
        return
    statistics, request = log.statistics(), log.request(users=asked)
    kept = [row for row in rows if row[2] not in leaving]
    counts, sums, squares = counted_by_hand(kept)
    after = statistics.without(request)
    assert after.counts.tolist() == counts
    assert after.sums.tolist() == sums
    assert after.squares is not None
    assert after.squares.tolist() == squares
    products = [UNIT * total - square for total, square in zip(sums, squares, strict=True)]
    again = ArmStatistics(
        ACTIONS, np.array(counts), np.array(sums), products=np.array(products, dtype=object)
    )
    retrained = learner.decide(again)
    release = Rollback().release(learner, statistics, request, NOTHING)
    assert release.probabilities.tolist() == [float(arm == retrained.action) for arm in ACTIONS]
    assert learner.scores(after).tobytes() == retrained.scores.tobytes()  # to the last bit


@pytest.mark.slow
def test_200_requests_to_the_bundled_log() -> None:
    log = datasets.flights()
    statistics, people = log.statistics(), [str(user) for user in log.users()]
    learner = LCB(confidence=1e-3)
    database = duckdb.connect()
    database.execute("CREATE TABLE log AS FROM read_csv(?)", [str(flights_path())])
    rng = np.random.default_rng(9)
    changed = 0
    for _ in range(200):
        leaving = rng.choice(people, size=int(rng.integers(1, 60)), replace=False).tolist()
        found = database.execute(
            "SELECT airline, count(*), sum(on_time)::BIGINT FROM log WHERE NOT list_contains(?, aircraft)"
            " GROUP BY airline",
            [leaving],
        ).fetchall()
        recounted = {action: (count, ones) for action, count, ones in found}
        pairs = [recounted.get(action, (0, 0)) for action in statistics.actions]
        again = ArmStatistics(
            statistics.actions,
            np.array([n for n, _ in pairs]),
            np.array([ones * UNIT for _, ones in pairs]),
            products=np.zeros(len(pairs), dtype=np.int64),
        )
        request = log.request(users=leaving)
        assert statistics.without(request) == again
        release = Rollback().release(learner, statistics, request, NOTHING)
        assert release.draw() == learner.decide(again).action
        changed += release.draw() != learner.decide(statistics).action
    assert 0 < changed < 200  # some requests change the decision


def test_a_vault_serves_what_a_vault_without_the_rows_serves(tmp_path: Path) -> None:
    rng = np.random.default_rng(10)
    rows = [
        (str(rng.choice(ACTIONS)), float(rng.integers(0, 1000) / 1000), f"u{rng.integers(20)}")
        for _ in range(400)
    ]
    leaving = [f"u{number}" for number in range(7)]
    kept = [row for row in rows if row[2] not in leaving]
    found = []
    for name, sent, asking in (("with", rows, leaving), ("without", kept, [])):
        url, keys = f"sqlite:///{tmp_path}/{name}.db", tmp_path / f"{name}.keys"
        with Vault.create(url, Configuration(actions=ACTIONS), keys=keys) as vault:
            vault.ingest(columns(sent), user="user")
            if asking:
                assert vault.forget(users=asking).records == len(rows) - len(kept) > 0
            found.append((vault.decide().action, vault.status(scores=True).scores))
    assert found[0] == found[1]
