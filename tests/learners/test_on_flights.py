"""Decisions on the bundled flights, as the documentation states them."""

import pytest

from armnesia.datasets import flights, flights_by_airline
from armnesia.learners import LCB, Imitation
from armnesia.privacy import Budget
from armnesia.unlearners import Rollback


def test_delta_is_served_to_los_angeles_by_a_small_margin() -> None:
    statistics = flights().statistics()
    learner = LCB().bind(statistics)
    scores = dict(zip(statistics.actions, learner.scores(statistics).round(3).tolist(), strict=True))
    assert learner.confidence == 1 / 16_026
    assert (scores["DL"], scores["VX"], scores["AA"]) == (0.786, 0.776, 0.774)
    assert learner.decide(statistics).action == "DL"


def test_forgetting_the_four_busiest_aircraft_of_delta_serves_virgin_instead() -> None:
    log = flights()
    statistics = log.statistics()
    learner = LCB().bind(statistics)
    request = log.request(users=list(log.users("DL"))[:4])
    assert request.counts.tolist() == [0, 0, 480, 0, 0]
    assert learner.decide(statistics.without(request)).action == "VX"
    release = Rollback().release(learner, statistics, request, Budget(epsilon=1.0, delta=1e-5))
    assert release.probabilities.tolist() == [0, 0, 0, 0, 1]


def test_a_pessimist_does_not_trust_the_best_mean_of_few_flights() -> None:
    statistics = flights_by_airline()
    hawaiian, delta = statistics.index_of("HA"), statistics.index_of("DL")
    assert statistics.means.argmax() == hawaiian
    assert statistics.means[hawaiian] == pytest.approx(0.874, abs=5e-4)
    assert statistics.counts[hawaiian] == 342
    assert LCB().bind(statistics).decide(statistics).index == delta


def test_imitation_serves_the_airline_with_most_flights() -> None:
    statistics = flights_by_airline()
    decision = Imitation().decide(statistics)
    assert (decision.action, int(decision.scores.max())) == ("UA", 57_782)
