"""A dry run says exactly what the ingest then does, and both say what a plain model says."""

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from armnesia.core.errors import ArmnesiaError, VaultError
from armnesia.vault import Configuration, Ingested, UserType, Vault
from armnesia.vault.state import incoming_rows, record_loader
from tests.databases import Place, fresh_place
from tests.vault.raw_vaults import arms

PEOPLE = ("ann", "bob", "eve", None)
PAGES = ("home", "search")


class Row(NamedTuple):
    id: str
    action: str
    reward: float
    user: str | None
    page: str


def rows_of(ids: range) -> st.SearchStrategy[list[Row]]:
    """Rows in any order, some several times; a few have another content than others with their id."""

    def row(number: int, odd: bool) -> Row:
        action = "AB"[(number + odd) % 2]
        return Row(f"r{number}", action, number % 3 / 2, PEOPLE[number % 4], PAGES[number % 5 % 2])

    odd = st.sampled_from([False] * 30 + [True])
    return st.lists(st.builds(row, st.sampled_from(ids), odd), min_size=1, max_size=20)


class History(NamedTuple):
    """What is in the vault before, who is forgotten, and what comes in then."""

    before: list[Row]
    people: set[str]
    records: set[str]
    then: list[Row]
    keyed: bool
    replaces: bool


HISTORIES = st.builds(
    History,
    rows_of(range(12)),
    st.sets(st.sampled_from(["ann", "bob"])),
    st.sets(st.sampled_from(["r0", "r2", "r7"])),
    rows_of(range(16)),
    st.booleans(),
    st.booleans(),
)


def as_log(rows: list[Row]) -> dict[str, list[Any]]:
    return {name: list(column) for name, column in zip(Row._fields, zip(*rows, strict=True), strict=True)}


def outcome(vault: Vault, rows: list[Row], *, replaces: bool, **options: Any) -> Ingested | str:
    """What an ingest says, or why it refuses."""
    try:
        return vault.ingest(as_log(rows), user="user", id="id", replace=replaces, **options)
    except ArmnesiaError as error:
        return str(error)


def small_steps(patched: pytest.MonkeyPatch) -> None:
    """Chunks of three rows, and records that are written four at a time."""
    patched.setattr(incoming_rows, "CHUNK", 3)
    patched.setattr(record_loader, "_AT_ONCE", 4)
    patched.setattr(record_loader, "_MANY", 2)


def counts(done: Ingested) -> tuple[int, ...]:
    return done.rows, done.added, done.already_there, done.suppressed, done.replaced


def check(history: History, database: str) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        small_steps(patched)
        by = ("page",) if history.keyed else ()
        configuration = Configuration(actions=("A", "B"), by=by, user_type=UserType.TEXT)
        with fresh_place(database, Path(folder)).create(configuration) as vault:
            first = outcome(vault, history.before, replaces=False)
            for person in sorted(history.people):
                vault.forget(users=[person], exactly=True)
            for record in sorted(history.records):
                vault.forget(records=[record])
            said = outcome(vault, history.then, replaces=history.replaces, dry_run=True)
            did = outcome(vault, history.then, replaces=history.replaces)
            if isinstance(said, str) or isinstance(did, str):
                assert said == did
            else:
                assert counts(said) == counts(did)
                assert (said.dry_run, did.dry_run) == (True, False)
                known = {} if isinstance(first, str) else {row.id: row for row in history.before}
                assert counts(did) == model(history, known)
                assert counts(outcome_again(vault, history)) == after(counts(did))
            assert vault.verify().holds


def model(history: History, known: dict[str, Row]) -> tuple[int, ...]:
    """Count by hand; an id always has the same content here, or the ingest would have been refused."""

    def is_forgotten(row: Row) -> bool:
        return row.user in history.people or row.id in history.records

    held = {id_: row for id_, row in known.items() if not is_forgotten(row)}
    suppressed = sum(map(is_forgotten, history.then))
    coming = {row.id: row for row in history.then if not is_forgotten(row)}
    added = len(coming.keys() - held.keys())
    replaced = sum(held.get(id_, row) != row for id_, row in coming.items())
    already = len(history.then) - suppressed - added - replaced
    return len(history.then), added, already, suppressed, replaced


def outcome_again(vault: Vault, history: History) -> Ingested:
    again = outcome(vault, history.then, replaces=history.replaces)
    assert isinstance(again, Ingested)
    return again


def after(done: tuple[int, ...]) -> tuple[int, ...]:
    """The same source again adds nothing."""
    rows, added, already, suppressed, replaced = done
    return rows, 0, already + added + replaced, suppressed, 0


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "examples"), [("sqlite", 150), ("postgresql", 30)])
def test_a_dry_run_says_what_the_ingest_does(kind: str, examples: int) -> None:
    @settings(max_examples=examples, suppress_health_check=[HealthCheck.too_slow])
    @given(history=HISTORIES)
    def histories(history: History) -> None:
        check(history, kind)

    histories()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_small_steps_give_the_same_vault(database: str, tmp_path: Path) -> None:
    """The digests and statistics do not depend on how many rows are written at a time."""
    rows = [Row(f"r{n}", "AB"[n % 2], n % 5 / 4, PEOPLE[n % 4], "home") for n in range(60)]
    found = []
    for steps in (False, True):
        with pytest.MonkeyPatch.context() as patched:
            if steps:
                small_steps(patched)
            with fresh_place(database, tmp_path).create(Configuration(actions=("A", "B"))) as vault:
                vault.ingest(as_log(rows[:40]), user="user", id="id")
                done = vault.ingest(as_log(rows[20:]), user="user", id="id")
                assert counts(done) == (40, 20, 20, 0, 0)
                assert vault.forget(users=["ann"]).records == 15
                assert vault.verify().holds
                assert vault.n_records == 45
                found.append(arms(vault))
    assert found[0] == found[1]


def test_a_source_is_refused_as_a_whole(place: Place) -> None:
    """Also for what only a comparison with the vault shows: a retired arm, an id with another reward."""
    with place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest({"action": ["A"], "reward": [1], "id": ["1"]}, id="id", no_user=True)
        vault.retire_arm("B", new_rows="refuse")
        for action, reward in (("B", 1), ("A", 0)):
            rows = {"action": ["A", "A", action], "reward": [1, 1, reward], "id": ["2", "3", "1"]}
            with pytest.raises(VaultError, match="nothing was ingested"):
                vault.ingest(rows, id="id", no_user=True)
            assert vault.n_records == 1
