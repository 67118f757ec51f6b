"""Corrections: rows in the place of records with their ids; counted, sealed, and nothing of the old left."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armnesia as am
from armnesia.core.errors import ArmnesiaError, InvalidInputError, VaultError
from armnesia.core.units import UNIT
from armnesia.vault import Configuration, UserType, Vault
from armnesia.vault.db import statements
from armnesia.vault.db.schema import RecordRow
from tests.databases import Place
from tests.vault.raw_vaults import Snapshot, arms_in, values

COLUMNS: dict[str, Any] = {"user": "user", "id": "id"}
NAMED = {"action": "action", "reward": "reward", **COLUMNS}
KEYS = pytest.mark.parametrize("by", [(), ("page",)], ids=["one decision", "many decisions"])
FROZEN: dict[str, Any] = {"unlearner": "frozen_rollback", "penalty": "frozen"}

Log = dict[str, list[Any]]


def log_of(*rows: tuple[str, str, float, str | None, str]) -> Log:
    """Rows of (id, action, reward, user, page)."""
    names = ("id", "action", "reward", "user", "page")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


BEFORE = log_of(
    *((f"a{n}", "A", 1.0, f"u{n}", "home") for n in range(8)),
    *((f"b{n}", "B", 0.0, f"u{n}", "home") for n in range(8)),
    ("c0", "A", 0.25, "ann", "search"),
    ("c1", "A", 0.75, "bob", "search"),
    ("c2", "B", 0.75, None, "search"),
)
CORRECTED = log_of(
    *((f"b{n}", "B", 1.0, f"u{n}", "home") for n in range(8)),  # the reward
    *((f"a{n}", "B", 1.0, f"u{n}", "home") for n in range(3)),  # the action
    ("c0", "A", 0.25, "ann", "home"),  # the key
    ("c1", "A", 0.75, "bob", "search"),  # nothing
    ("c2", "B", 0.5, None, "new"),  # the reward, the key of a new decision, and no user
    ("d0", "B", 1.0, "eve", "new"),  # a new row
)
AFTER = log_of(
    *((f"a{n}", "B" if n < 3 else "A", 1.0, f"u{n}", "home") for n in range(8)),
    *((f"b{n}", "B", 1.0, f"u{n}", "home") for n in range(8)),
    ("c0", "A", 0.25, "ann", "home"),
    ("c1", "A", 0.75, "bob", "search"),
    ("c2", "B", 0.5, None, "new"),
    ("d0", "B", 1.0, "eve", "new"),
)


def filled(place: Place, log: Log = BEFORE, **options: Any) -> Vault:
    configuration = {
        "actions": ("A", "B"),
        "user_type": UserType.TEXT,
        "columns": NAMED,
        "confidence": 0.5,
        **options,
    }
    vault = place.create(Configuration(**configuration))
    vault.ingest(log, **COLUMNS)
    return vault


def correct(vault: Vault, log: Log, **options: Any) -> Any:
    return vault.ingest(log, **COLUMNS, replace=True, **options)


def sums_of(log: Log, by: tuple[str, ...]) -> dict[str, list[tuple[int, int]]]:
    """Counted by hand: per decision, the count and the units of each arm."""
    found: dict[str, list[tuple[int, int]]] = {}
    for action, reward, page in zip(log["action"], log["reward"], log["page"], strict=True):
        own = found.setdefault(json.dumps([page] if by else [], separators=(",", ":")), [(0, 0), (0, 0)])
        count, units = own["AB".index(action)]
        own["AB".index(action)] = (count + 1, units + int(reward * UNIT))
    return found


def held(vault: Vault) -> dict[str, list[tuple[int, int]]]:
    rows = values(vault, "SELECT key, statistics FROM decision")
    return {key: [own[:2] for own in arms_in(text)] for key, text in rows if any(map(any, arms_in(text)))}


@KEYS
@pytest.mark.parametrize("options", [{}, FROZEN], ids=["retained", "frozen"])
def test_corrected_rows_come_in_the_place_of_the_old_ones(
    place: Place, by: tuple[str, ...], options: dict[str, Any]
) -> None:
    with filled(place, by=by, **options) as vault:
        would = correct(vault, CORRECTED, dry_run=True)
        assert held(vault) == sums_of(BEFORE, by)
        done = correct(vault, CORRECTED)
        moved = 2 if by else 1  # without key columns c0 is as before
        assert (done.added, done.replaced, done.already_there) == (1, 11 + moved, 3 - moved)
        assert (would.added, would.replaced, would.already_there) == (1, 11 + moved, 3 - moved)
        assert held(vault) == sums_of(AFTER, by)
        assert vault.n_records == vault.status().records == len(AFTER["id"])
        assert vault.verify().problems == ()
        entry = vault.ledger().entries[-1]
        assert (entry.number, entry.kind, entry.facts) == (2, "correct", {"replaced": 11 + moved})
        assert vault.status().replaced == 11 + moved
        again = correct(vault, CORRECTED)
        assert (again.added, again.replaced, again.already_there) == (0, 0, 15)
        assert again.head == done.head
        assert Vault.restore(place.url, keys=place.keys).as_it_was
        assert vault.forget(users=["u0"]).counts == {"A": 0, "B": 2}
        assert vault.forget(users=["ann"]).counts == {"A": 1, "B": 0}
        assert vault.verify().problems == ()


@KEYS
def test_the_decision_is_made_again_as_by_an_ingest_of_the_right_rows(
    place: Place, by: tuple[str, ...]
) -> None:
    with filled(place, by=by) as vault:
        where = {"page": "home"} if by else None
        assert vault.decide(where).action == "A"
        correct(vault, CORRECTED)
        served = vault.decide(where)
        rows = [
            each
            for each in zip(AFTER["action"], AFTER["reward"], AFTER["page"], strict=True)
            if not by or each[2] == "home"
        ]
        counts = [sum(arm == action for action, *_ in rows) for arm in "AB"]
        units = [sum(int(reward * UNIT) for action, reward, _ in rows if action == arm) for arm in "AB"]
        right = am.ArmStatistics(("A", "B"), np.array(counts), np.array(units))
        assert served.action == am.LCB(confidence=0.5).decide(right).action == "B"
        assert served.by == "learner"


def test_a_chunk_reads_the_records_with_its_ids_once(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, asked = statements.read, list[Any]()

    def read(session: Any, rows: Any, **where: Any) -> Any:
        asked.append(rows)
        return really(session, rows, **where)

    with filled(sqlite_place) as vault:
        monkeypatch.setattr(statements, "read", read)
        assert correct(vault, CORRECTED, dry_run=True).replaced == 12
    assert asked.count(RecordRow) == 1


def test_the_counts_of_a_frozen_penalty_do_not_count_a_correction(sqlite_place: Place) -> None:
    with filled(sqlite_place, **FROZEN) as vault:
        vault.forget(users=["u7"])
        correct(vault, log_of(("a0", "B", 1.0, "u0", "home")))
        ((text,),) = values(vault, "SELECT statistics FROM decision")
        assert [gone for _, _, gone in arms_in(text)] == [1, 1]
        assert vault.verify().problems == ()


@KEYS
@pytest.mark.parametrize("user", ["bob", None, "gone"])
def test_a_record_does_not_change_its_person(place: Place, by: tuple[str, ...], user: str | None) -> None:
    """Also not to one who is forgotten, whose rows would otherwise be left out without a word."""
    with filled(place, by=by) as vault:
        vault.forget(users=["gone"])
        before, head = held(vault), vault.head
        rows = log_of(("a1", "B", 0.0, "u1", "home"), ("c0", "A", 0.25, user, "search"))
        sentence = r"at least 1 row of this source has an id .* without one: the first is row 2; an id"
        for options in ({}, {"dry_run": True}):
            with pytest.raises(VaultError, match=sentence):
                correct(vault, rows, **options)
        assert (held(vault), vault.head) == (before, head)
        assert vault.verify().problems == ()


def test_a_forgotten_person_and_a_forgotten_record_stay_out(place: Place) -> None:
    with filled(place) as vault:
        vault.forget(users=["u0"])
        vault.forget(records=["c1"])
        rows = log_of(
            ("a0", "B", 1.0, "u0", "home"), ("c1", "B", 0.0, "bob", "home"), ("c0", "B", 0.0, "ann", "home")
        )
        for dry_run in (True, False):
            done = correct(vault, rows, dry_run=dry_run)
            assert (done.added, done.replaced, done.suppressed) == (0, 1, 2)
        assert vault.verify().problems == ()
        assert vault.forget(users=["u0"]).repeated


def test_an_id_that_stands_twice_with_different_contents_is_refused(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        twice = log_of(("c0", "B", 0.0, "ann", "home"), ("c0", "B", 1.0, "ann", "home"))
        with pytest.raises(ArmnesiaError, match="id"):
            correct(vault, twice)
        assert held(vault) == sums_of(BEFORE, ())


def test_an_id_that_stands_far_apart_is_replaced_once(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = ("c0", "B", 0.0, "ann", "home")
    rows = log_of(row, ("d0", "A", 0.0, "eve", "home"), row, ("d1", "A", 0.0, "eve", "home"), row)
    with filled(sqlite_place) as vault:
        monkeypatch.setattr("armnesia.vault.state.incoming_rows.CHUNK", 2)
        would, done = correct(vault, rows, dry_run=True), correct(vault, rows)
        assert (would.added, would.replaced, would.already_there) == (2, 1, 2)
        assert (done.added, done.replaced, done.already_there) == (2, 1, 2)
        assert vault.verify().problems == ()


def test_rows_without_ids_are_refused(sqlite_place: Place) -> None:
    with (
        sqlite_place.create(Configuration(actions=("A", "B"))) as vault,
        pytest.raises(InvalidInputError, match="corrections need the id col"),
    ):
        vault.ingest(CORRECTED, user="user", replace=True)


def test_a_row_that_differs_says_how_corrections_come_in(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault, pytest.raises(VaultError, match=r"replace=True \(--replace\)"):
        vault.ingest(CORRECTED, **COLUMNS)


@KEYS
def test_external_vaults_read_corrections_at_their_sources(
    place: Place, tmp_path: Path, by: tuple[str, ...]
) -> None:
    def write(log: Log) -> str:
        lines = [
            ",".join("" if each is None else str(each) for each in row)
            for row in zip(*log.values(), strict=True)
        ]
        (tmp_path / "log.csv").write_text("\n".join([",".join(log), *lines]) + "\n", encoding="utf-8")
        return str(tmp_path / "log.csv")

    vault = place.create(Configuration(actions=("A", "B"), by=by, mode="external", user_type=UserType.TEXT))
    with vault:
        file = write(BEFORE)
        vault.ingest(file, **COLUMNS)
        vault.forget(users=["bob"])
        write(AFTER)
        with pytest.raises(
            VaultError, match="after armnesia ingest, which counts a source that has changed again"
        ):
            vault.ingest(file, **COLUMNS, replace=True)
        if by:
            assert Vault.restore(place.url, keys=place.keys).recounted
        else:
            assert vault.ingest(file, **COLUMNS).recounted_because
        without = [place for place, user in enumerate(AFTER["user"]) if user != "bob"]
        assert held(vault) == sums_of(
            {name: [column[place] for place in without] for name, column in AFTER.items()}, by
        )
        assert vault.verify().problems == ()


@KEYS
def test_rows_of_a_retired_arm_are_corrected_and_none_is_moved_to_it(
    sqlite_place: Place, by: tuple[str, ...]
) -> None:
    with filled(sqlite_place, by=by) as vault:
        vault.retire_arm("A", new_rows="refuse")
        for dry_run in (True, False):
            with pytest.raises(VaultError, match="arm 'A' is not offered"):
                correct(vault, log_of(("b0", "A", 0.0, "u0", "home")), dry_run=dry_run)
            assert correct(vault, log_of(("a0", "A", 0.0, "u0", "home")), dry_run=dry_run).replaced == 1
        assert correct(vault, log_of(("a1", "B", 0.0, "u1", "home"))).replaced == 1
        if by:
            with pytest.raises(VaultError, match="arm 'A' is not offered"):
                correct(vault, log_of(("c0", "A", 0.25, "ann", "home")))
        assert vault.verify().problems == ()


@KEYS
def test_a_backup_has_the_old_rows_and_says_that_corrections_are_lost(
    place: Place, tmp_path: Path, by: tuple[str, ...]
) -> None:
    vault = filled(place, by=by)
    correct(vault, log_of(("a1", "B", 0.0, "u1", "home")))
    backup = Snapshot(place, vault, tmp_path)
    replaced = correct(vault, CORRECTED).replaced
    vault.forget(users=["u0"])
    vault.close()
    backup.put_back()
    done = Vault.restore(place.url, keys=place.keys)
    assert (done.replayed, done.corrections_lost) == (2, replaced)
    with place.open() as vault:
        assert vault.verify().problems == ()
        done = correct(vault, CORRECTED)
        assert (done.replaced, done.suppressed) == (replaced - 2, 2)  # u0 had two rows
        assert vault.verify().problems == ()
