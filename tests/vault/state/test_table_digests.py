"""Digests of tables depend on the rows that are present, not on the order in which rows came and went."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.state.suppression import SuppressionRows
from armnesia.vault.state.table_digests import TableDigests

RING, OTHER = Keyring.create("v-1"), Keyring.create("v-1")
HEAD = Head(7, "ab" * 32)
digests = st.integers(0, 5).map(lambda number: bytes([number]) * 16)
rows = st.tuples(digests, st.none() | digests, st.integers(0, 3), st.integers(0, 2))
tables = st.sampled_from(TableDigests._fields)


@given(st.lists(rows, unique=True), st.randoms(use_true_random=False), tables)
def test_the_order_does_not_matter_and_every_row_does(some: list[Any], random: Any, table: str) -> None:
    digest = TableDigests().update(RING, table, some)
    shuffled = random.sample(some, len(some))
    one_by_one = TableDigests()
    for row in shuffled:
        one_by_one = one_by_one.update(RING, table, [row])
    assert one_by_one == digest
    for place in range(len(some)):
        less = TableDigests().update(RING, table, some[:place] + some[place + 1 :])
        assert less != digest
        assert less.update(RING, table, [some[place]]) == digest
    assert not some or TableDigests().update(OTHER, table, some) != digest
    assert digest.update(RING, table, some) == TableDigests()


@given(st.lists(rows, unique=True, min_size=2, max_size=2))
def test_no_two_rows_count_alike(two: list[Any]) -> None:
    first, second = (TableDigests().update(RING, "record", [row]) for row in two)
    assert first != second


def test_text_and_number_and_table_are_told_apart() -> None:
    alike: list[Any] = [(1, "2"), ("1", 2), (1, 2), (b"1", 2), (None, 2), ("None", 2), (1, "2", None)]
    seen = {TableDigests().update(RING, table, [row]) for row in alike for table in TableDigests._fields}
    assert len(seen) == len(alike) * len(TableDigests._fields)


@given(st.tuples(*[st.integers(0, 2**128 - 1)] * 5))
def test_what_is_masked_comes_back_by_the_same_keys_and_head_only(values: tuple[int, ...]) -> None:
    table_digests = TableDigests(*values)
    text = table_digests.masked(RING, HEAD)
    assert TableDigests.unmasked(text, RING, HEAD) == table_digests
    assert table_digests.masked(RING, HEAD) != text  # two texts do not tell whether anything changed
    assert TableDigests.unmasked(text, OTHER, HEAD) != table_digests
    assert TableDigests.unmasked(text, RING, Head(7, "cd" * 32)) != table_digests


@pytest.mark.parametrize("text", ["", "ab", "zz" * 96, "ab" * 80, "ab" * 97])
def test_what_is_no_digest_is_refused(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        TableDigests.unmasked(text, RING, HEAD)


lines = st.dictionaries(digests, st.tuples(st.sampled_from(["user", "record"]), st.integers(1, 3), st.none()))


@given(lines, lines, lines)
def test_lines_are_exchanged_in_the_digest_as_in_the_table(
    kept: dict[bytes, Any], old: dict[bytes, Any], new: dict[bytes, Any]
) -> None:
    def table_of(*parts: dict[bytes, Any]) -> dict[bytes, Any]:
        return {digest: (digest, *rest) for part in parts for digest, rest in part.items()}

    others = table_of(
        {bytes([9]) * 16: ("user", 1, None)} | {b"x" + digest: rest for digest, rest in kept.items()}
    )
    before, after = table_of(old), table_of(new)
    table_digests = TableDigests().update(RING, "suppressed", [*others.values(), *before.values()])
    table_digests, statements = SuppressionRows(suppressed=before).apply_changes(
        SuppressionRows(suppressed=after), RING, table_digests
    )
    assert table_digests == TableDigests().update(RING, "suppressed", [*others.values(), *after.values()])
    table = others | before
    for sql, parameters in statements:
        if sql.startswith("DELETE"):
            del table[parameters[0]]
        else:
            table[parameters[0]] = parameters
    assert table == others | after
