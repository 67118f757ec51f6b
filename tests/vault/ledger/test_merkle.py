"""The tree of RFC 6962 against the RFC's own recursive definitions, and against published values."""

import base64
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.core.errors import InvalidInputError
from armnesia.vault.ledger.merkle import (
    EMPTY_ROOT,
    Frontier,
    Tree,
    leaf_hash,
    node_hash,
    root_from_proof,
    split,
)
from tests.quick import examples, quick_only

LARGEST = 200
DATA = [f"entry {number}".encode() for number in range(LARGEST)]
LEAVES = [leaf_hash(data) for data in DATA]

# The leaves and the values that the implementations of Certificate Transparency test themselves with.
PUBLISHED_LEAVES = [
    bytes.fromhex(text)
    for text in (
        *("", "00", "10", "2021", "3031", "40414243", "5051525354555657"),
        "606162636465666768696a6b6c6d6e6f",
    )
]
PUBLISHED_ROOTS = {
    1: "bjQLnP+zepicpUTmu3gKLHiQHT+zNzh2hRGjBhevoB0=",
    3: "rra8/idLcKFPsGel5VeCZNsPqbUa9eC6FZFY8yngbnc=",
    5: "Tju7H3tHjc/nH7YxYxUZo7yhLJrvyhYSv85ME6hiZNQ=",
    8: "XcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=",
}
PUBLISHED_PROOFS = {
    (0, 8): [
        "lqKW0iTyhcZ77pPDD4owkVfw2qNdxbh+QQt4YwoJz8c=",
        "Xwg/ChozygdqlSeYMlgNs+DvRYS9/x9UyKNg9Q3jAx4=",
        "a0eq8p7jwq+a+Im8H7klTavTEXfxYjLdaqsDXKOb9uQ=",
    ],
    (5, 8): [
        "vBoGQ7EuTS18d5GPROD095qDi2z57FtcKD4fTYhZnms=",
        "yoVOoSjtBQtBs1/8G4e46yveRh6eO1WW7Oa51ZdaCuA=",
        "037kGJdt2VdTwcc4Yrk5j6Kiz5tP8P3+izDNlSCWFLc=",
    ],
    (2, 3): ["+sVCA+fMaWzw38tCySodnbr3CtnmIfS9jZhmLwDjwSU="],
    (1, 5): [
        "bjQLnP+zepicpUTmu3gKLHiQHT+zNzh2hRGjBhevoB0=",
        "Xwg/ChozygdqlSeYMlgNs+DvRYS9/x9UyKNg9Q3jAx4=",
        "vBoGQ7EuTS18d5GPROD095qDi2z57FtcKD4fTYhZnms=",
    ],
}


def mth(data: list[bytes]) -> bytes:
    """MTH of RFC 6962, section 2.1, word for word."""
    if not data:
        return sha256().digest()
    if len(data) == 1:
        return sha256(b"\x00" + data[0]).digest()
    k = largest_power_of_two_below(len(data))
    return sha256(b"\x01" + mth(data[:k]) + mth(data[k:])).digest()


def path(m: int, data: list[bytes]) -> list[bytes]:
    """PATH of RFC 6962, section 2.1.1, word for word."""
    if len(data) == 1:
        return []
    k = largest_power_of_two_below(len(data))
    return [*path(m, data[:k]), mth(data[k:])] if m < k else [*path(m - k, data[k:]), mth(data[:k])]


def largest_power_of_two_below(n: int) -> int:
    k = 1
    while 2 * k < n:
        k *= 2
    return k


def accepts(leaf: bytes, index: int, size: int, proof: list[bytes], root: bytes) -> bool:
    try:
        return root_from_proof(leaf, index, size, proof) == root
    except InvalidInputError:
        return False


def test_hashes_are_those_published() -> None:
    assert EMPTY_ROOT.hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert leaf_hash(b"").hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert leaf_hash(b"L123456").hex() == "395aa064aa4c29f7010acfe3f25db9485bbd4b91897b6ad7ad547639252b4d56"
    assert node_hash(b"N123", b"N456").hex() == (
        "aa217fe888e47007fa15edab33c2b492a722cb106c64667fc2b044444de66bbb"
    )


@pytest.mark.parametrize("size", PUBLISHED_ROOTS)
def test_roots_are_those_published(size: int) -> None:
    root = Tree([leaf_hash(data) for data in PUBLISHED_LEAVES[:size]]).root
    assert base64.b64encode(root).decode() == PUBLISHED_ROOTS[size]


@pytest.mark.parametrize(("index", "size"), PUBLISHED_PROOFS)
def test_proofs_are_those_published(index: int, size: int) -> None:
    proof = Tree([leaf_hash(data) for data in PUBLISHED_LEAVES[:size]]).proof(index)
    assert [base64.b64encode(each).decode() for each in proof] == PUBLISHED_PROOFS[index, size]


def test_roots_and_frontiers_are_those_of_the_definition() -> None:
    frontier = Frontier()
    for size in range(LARGEST + 1):
        root = mth(DATA[:size])
        assert Tree(LEAVES[:size]).root == frontier.root == root
        assert frontier == Frontier(size, split(b"".join(frontier.hashes))) == Frontier.of(LEAVES[:size])
        if size < LARGEST:
            frontier = frontier.append(LEAVES[size])


@pytest.mark.parametrize("size", quick_only(range(1, 17), [*range(1, 17), 199, 200]))
def test_proofs_are_those_of_the_definition(size: int) -> None:
    for index in range(size):
        assert list(Tree(LEAVES[:size]).proof(index)) == path(index, DATA[:size])


@pytest.mark.parametrize("sizes", quick_only([range(1, 65)], [range(1, 65), range(65, LARGEST + 1)]))
def test_every_leaf_of_every_size_proves_and_no_other_does(sizes: range) -> None:
    for size in sizes:
        leaves, root = LEAVES[:size], Tree(LEAVES[:size]).root
        for index in range(size):
            proof = list(Tree(leaves).proof(index))
            assert root_from_proof(leaves[index], index, size, proof) == root
            assert not accepts(leaves[index], (index + 1) % size, size, proof, root) or size == 1
            assert not accepts(LEAVES[(index + 1) % LARGEST], index, size, proof, root)
            assert not accepts(leaves[index], index, size, [*proof, root], root)
            assert not proof or not accepts(leaves[index], index, size, proof[:-1], root)


@given(st.data())
@examples(300)
def test_another_place_size_or_bit_fails(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, LARGEST))
    index = data.draw(st.integers(0, size - 1))
    proof, root = list(Tree(LEAVES[:size]).proof(index)), Tree(LEAVES[:size]).root
    elsewhere = data.draw(st.integers(-1, LARGEST + 1).filter(lambda n: n != index))
    assert not accepts(LEAVES[index], elsewhere, size, proof, root)
    # A size is not bound by a proof of the same shape, but by the checkpoint that has size and root.
    other = data.draw(st.integers(0, LARGEST).filter(lambda n: n != size))
    assert not accepts(LEAVES[index], index, other, proof, mth(DATA[:other]))
    bit = data.draw(st.integers(0, 8 * 32 * (1 + len(proof)) - 1))
    every = [LEAVES[index], *proof]
    place, bit = divmod(bit, 8 * 32)
    every[place] = (int.from_bytes(every[place]) ^ (1 << bit)).to_bytes(32)
    assert not accepts(every[0], index, size, every[1:], root)


def test_wrong_lengths_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="must be of 2 hashes of 32 bytes; got 1"):
        root_from_proof(LEAVES[0], 0, 4, [LEAVES[1]])
    with pytest.raises(InvalidInputError, match="must be of 1 hashes of 32 bytes"):
        root_from_proof(LEAVES[0], 0, 2, [LEAVES[1][:31]])
    with pytest.raises(InvalidInputError, match="a leaf of 2 must have a number from 0 below that; got 2"):
        Tree(LEAVES[:2]).proof(2)
    with pytest.raises(InvalidInputError, match="a leaf of 0 must have a number"):
        root_from_proof(LEAVES[0], 0, 0, [])
