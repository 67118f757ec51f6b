"""The sums of a decision remember the stream that they were made from, for its configuration alone."""

from dataclasses import replace

import numpy as np

from armnesia import LCB
from armnesia.core.statistics import ArmStatistics
from armnesia.unlearners.stream import Stream
from armnesia.vault import Configuration
from armnesia.vault.state.decision_statistics import ArmSums
from tests.databases import Place
from tests.vault.raw_vaults import filled


def test_another_configuration_has_another_stream() -> None:
    one = Configuration(actions=("A", "B"), confidence=0.01)
    other = Configuration(actions=("A", "B"), confidence=0.02)
    sums = ArmSums((2, 1), (5, 0))
    first = sums.stream(one)
    assert sums.stream(one) is first
    assert first.learner == LCB(confidence=0.01)
    assert sums.stream(other).learner == LCB(confidence=0.02)
    assert sums.stream(one) == first


def test_sums_that_were_changed_have_another_stream() -> None:
    configuration = Configuration(actions=("A", "B"))
    stream = ArmSums((2, 1), (5, 0)).stream(configuration)
    known = ArmSums.of(stream, configuration)
    assert known.stream(configuration) is stream
    record = ArmStatistics(("A", "B"), np.array([1, 0]), np.array([0, 0]))
    for changed in (known.add(record), known.plus([1, 0], [0, 0]), replace(known, counts=(3, 1))):
        assert changed.stream(configuration).statistics.counts.tolist() == [3, 1]
    assert known.remove(record).stream(configuration).statistics.counts.tolist() == [1, 1]


def test_a_stream_of_another_configuration_is_not_remembered() -> None:
    configuration = Configuration(actions=("A", "B"), confidence=0.01)
    other = Stream(LCB(confidence=0.5), ArmStatistics.empty(("A", "B")))
    assert ArmSums.of(other).stream(configuration).learner == LCB(confidence=0.01)


def test_what_a_vault_remembers_after_requests_is_what_it_reads_again(place: Place) -> None:
    with filled(place) as vault:
        vault.forget(users=["ann"])
        vault.forget(users=["cem"])
        with vault._connection.reading() as transaction:
            remembered, text = transaction.state.stream, transaction.state.configuration.text
        with place.open() as other, other._connection.reading() as transaction:
            read = transaction.state
        assert remembered == read.stream
        assert text == read.configuration.text == Configuration.from_dict(read.configuration.to_dict()).text
        assert vault.verify().problems == ()
