"""Digests are found wherever they stand in a file, few or many, also where two blocks meet."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.vault.storage import digest_search
from armnesia.vault.storage.digest_search import offsets_of

LENGTH = 16


def all_places(data: bytes, digests: list[bytes]) -> list[int]:
    """By comparing every place with every digest."""
    return [at for at in range(len(data)) if data[at : at + LENGTH] in set(digests)]


@given(
    size=st.integers(0, 300),
    block=st.integers(1, 100),
    number=st.integers(1, 12),
    seed=st.integers(0, 10**6),
)
def test_places_are_those_of_every_comparison(size: int, block: int, number: int, seed: int) -> None:
    """Of two values only, so that parts of digests are everywhere; with more than four, all at once."""
    draw = random.Random(seed)
    digests = [bytes(draw.choices((0, 255), k=LENGTH)) for _ in range(number)]
    data = bytearray(draw.choices((0, 255), k=size))
    for digest in digests[::2]:
        if size >= LENGTH:
            at = draw.randrange(size - LENGTH + 1)
            data[at : at + LENGTH] = digest
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(digest_search, "_BLOCK", block)
        found = list(offsets_of(lambda at, n: bytes(data[at : at + n]), digests))
    assert sorted(found) == all_places(bytes(data), digests)
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("number", [1, 5, 3000])
def test_one_of_many_digests_is_found_in_a_large_file(number: int) -> None:
    draw = random.Random(3)
    data = bytearray(draw.randbytes(3_000_001))
    digests = [draw.randbytes(LENGTH) for _ in range(number)]
    data[1_234_567 : 1_234_567 + LENGTH] = digests[-1]
    assert list(offsets_of(lambda at, n: bytes(data[at : at + n]), digests)) == [1_234_567]
