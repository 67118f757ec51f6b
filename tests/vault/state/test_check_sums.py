"""Check-sums of tables depend on the rows that are present, not on the order in which rows came and went."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.check_sums import CheckSums

RING, OTHER = Keyring.create("v-1"), Keyring.create("v-1")
HEAD = 7
digests = st.integers(0, 5).map(lambda number: bytes([number]) * 16)
rows = st.tuples(digests, st.none() | digests, st.integers(0, 3), st.integers(0, 2), st.just(0))
tables = st.sampled_from(["record", "suppressed", "people", "decision", "subject_request"])


@given(st.lists(rows, unique=True), st.randoms(use_true_random=False), tables)
def test_the_order_does_not_matter_and_every_row_does(some: list[Any], random: Any, table: str) -> None:
    digest = CheckSums().update(RING, table, some)
    shuffled = random.sample(some, len(some))
    one_by_one = CheckSums()
    for row in shuffled:
        one_by_one = one_by_one.update(RING, table, [row])
    assert one_by_one == digest
    for place in range(len(some)):
        less = CheckSums().update(RING, table, some[:place] + some[place + 1 :])
        assert less != digest
        assert less.update(RING, table, [some[place]]) == digest
    assert not some or CheckSums().update(OTHER, table, some) != digest
    assert digest.update(RING, table, some) == CheckSums()


@given(st.lists(rows, unique=True, min_size=2, max_size=2))
def test_no_two_rows_count_alike(two: list[Any]) -> None:
    first, second = (CheckSums().update(RING, "record", [row]) for row in two)
    assert first != second


def test_text_and_number_and_table_are_told_apart() -> None:
    alike: list[Any] = [(1, "2"), ("1", 2), (1, 2), (b"1", 2), (None, 2), ("None", 2)]
    seen = {
        CheckSums().update(RING, table, [(*row, 0, 0, 0)]) for row in alike for table in CheckSums._fields
    }
    assert len(seen) == len(alike) * len(CheckSums._fields)


@given(st.tuples(*[st.integers(0, 2**128 - 1)] * 7))
def test_what_is_masked_comes_back_by_the_same_keys_and_commit_only(values: tuple[int, ...]) -> None:
    check_sums = CheckSums(*values)
    text = check_sums.masked(RING, HEAD)
    assert CheckSums.unmasked(text, RING, HEAD) == check_sums
    assert check_sums.masked(RING, HEAD) != text  # two texts do not tell whether anything changed
    assert CheckSums.unmasked(text, OTHER, HEAD) != check_sums
    assert CheckSums.unmasked(text, RING, 8) != check_sums


@pytest.mark.parametrize("text", ["", "ab", "zz" * 96, "ab" * 80, "ab" * 97])
def test_what_is_no_digest_is_refused(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        CheckSums.unmasked(text, RING, HEAD)


lines = st.dictionaries(digests, st.tuples(st.sampled_from(["user", "record"]), st.integers(1, 3), st.none()))
