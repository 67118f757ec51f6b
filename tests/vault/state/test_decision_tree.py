"""The hash tree over decisions: put step by step it is that of all rows, and no other row passes."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.core.errors import VaultError
from armnesia.vault import Configuration
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.decision_tree import FAN_OUT, DecisionTree, build_tree, replace_tree
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import DecisionRow
from tests.databases import Place, fresh_place
from tests.quick import examples

KEYRING = Keyring.create("v-1")


def row(number: int, content: str = "{}") -> DecisionRow:
    return DecisionRow(number, f'["{number}"]', content, 0, "learner", b"")


@contextmanager
def session_of(place: Place) -> Iterator[Session]:
    """A transaction on an empty vault with key columns."""
    configuration = Configuration(actions=("A",), by=("page",))
    with place.create(configuration) as vault, vault._connection.database.writing() as session:
        yield session


@examples(60)
@given(st.lists(st.integers(0, 90), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_growing_and_changing_gives_the_tree_of_all_rows(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], draw: random.Random
) -> None:
    place = fresh_place("sqlite", tmp_path_factory.mktemp("tree"))
    rows: dict[int, DecisionRow] = {}
    with session_of(place) as session:
        tree = DecisionTree(KEYRING, 0, 0)
        for step, more in enumerate(steps):
            size = len(rows) + more
            changed = {number for number in rows if draw.random() < 0.2}
            new = {number: row(number, f"{step}") for number in {*changed, *range(len(rows) + 1, size + 1)}}
            tree, statements = tree.put(session, new.values(), size)
            session.execute_together(statements)
            rows |= new
            expected, nodes = build_tree((rows[number] for number in sorted(rows)), KEYRING)
            assert (tree.size, tree.root) == (expected.size, expected.root)
            assert dict(tables.stream_nodes(session)) == nodes
            tree.check(session, rows.values())


@pytest.mark.parametrize("size", [1, 2, FAN_OUT, FAN_OUT + 1, FAN_OUT**2, FAN_OUT**2 + 1])
def test_only_what_was_stored_last_passes(sqlite_place: Place, size: int) -> None:
    rows = [row(number) for number in range(1, size + 1)]
    with session_of(sqlite_place) as session:
        tree = replace_tree(session, rows, KEYRING)
        for number in {1, size // 2 + 1, size}:
            tree.check(session, [rows[number - 1]])
            for wrong in (
                rows[number - 1]._replace(statistics="{ }"),
                rows[number - 1]._replace(number=size + 1),
                rows[number - 1]._replace(number=0),
                rows[number - 1]._replace(key='["x"]'),
            ):
                with pytest.raises(VaultError, match="changed by something other than armnesia"):
                    tree.check(session, [wrong])
        for other in (
            DecisionTree(KEYRING, size, tree.root ^ 1),
            DecisionTree(KEYRING, size + 1, tree.root),
            DecisionTree(KEYRING.with_new_digest_key(), size, tree.root),
        ):
            with pytest.raises(VaultError, match="changed by something other than armnesia"):
                other.check(session, [rows[-1]])


def test_a_changed_node_is_refused_for_the_decisions_below_it(sqlite_place: Place) -> None:
    rows = [row(number) for number in range(1, 3 * FAN_OUT + 1)]
    with session_of(sqlite_place) as session:
        tree = replace_tree(session, rows, KEYRING)
        nodes: dict[int, bytes] = dict(tables.stream_nodes(session))
        first, second = sorted(nodes)[:2]
        session.execute_together([tables.put_node(first, nodes[second])])
        with pytest.raises(VaultError, match="changed by something other than armnesia"):
            tree.check(session, [rows[0]])
        with pytest.raises(VaultError, match="changed by something other than armnesia"):
            tree.put(session, [row(1, "new")], len(rows))  # which must not make a root of it
        tree.check(session, [rows[FAN_OUT]])
