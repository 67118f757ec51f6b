"""Vaults with many decisions: keys, what is served, one request in all of them, and what is noticed."""

import json
import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armnesia as am
from armnesia.core.errors import InvalidInputError, InvalidLogError, UnsupportedError, VaultError
from armnesia.vault import Configuration, Served, SignedDecisions, Vault
from armnesia.vault.db import statements
from armnesia.vault.db.database import Session, Statement
from armnesia.vault.db.schema import DecisionRow
from armnesia.vault.state.decision_table import put_decisions, read_decisions
from tests.databases import Place
from tests.vault.raw_vaults import arms_in, change, values

ACTIONS = ("A", "B", "C")
BY = ("country", "age:18,30,50")
COLUMNS: dict[str, Any] = {"user": "user", "id": "id"}
TILT: dict[str, Any] = {"unlearner": "tilt", "epsilon": 1.0, "delta": 1e-5}
FROZEN: dict[str, Any] = {"unlearner": "frozen_rollback", "penalty": "frozen"}


def visits(rows: int = 400, *, countries: int = 5, seed: int = 1) -> dict[str, list[Any]]:
    draw = random.Random(seed)
    return {
        "action": [draw.choice(ACTIONS) for _ in range(rows)],
        "reward": [draw.choice([0, 1, 1, 0.5]) for _ in range(rows)],
        "user": [f"u{draw.randrange(20)}" for _ in range(rows)],
        "id": [f"r{row}" for row in range(rows)],
        "country": [f"C{draw.randrange(countries)}" for _ in range(rows)],
        "age": [draw.randrange(14, 80) for _ in range(rows)],
    }


LOG = visits()


def without(log: dict[str, list[Any]], user: str) -> dict[str, list[Any]]:
    kept = [row for row, name in enumerate(log["user"]) if name != user]
    return {name: [column[row] for row in kept] for name, column in log.items()}


def created(place: Place, **options: Any) -> Vault:
    return place.create(Configuration(**{"actions": ACTIONS, "by": BY, **options}))


def filled(place: Place, log: dict[str, list[Any]] = LOG, **options: Any) -> Vault:
    vault = created(place, **options)
    assert vault.ingest(log, **COLUMNS).added == len(log["id"])
    return vault


def csv_file(path: Path, log: dict[str, list[Any]]) -> Path:
    lines = [",".join(map(str, row)) for row in zip(*log.values(), strict=True)]
    path.write_text("\n".join([",".join(log), *lines]) + "\n", encoding="utf-8")
    return path


def held(vault: Vault) -> dict[tuple[str, ...], list[tuple[int, int, int]]]:
    """By key, (count, units, deleted) of each arm."""
    rows = values(vault, "SELECT key, statistics FROM decision")
    return {tuple(json.loads(key)): arms_in(statistics) for key, statistics in rows}


def served(vault: Vault) -> dict[tuple[str, ...], tuple[Any, str]]:
    found = vault.decisions()
    each = zip(found.keys, found.actions, found.chosen_by, strict=True)
    return {tuple(key.values()): (action, by) for key, action, by in each}


def in_log(log: dict[str, list[Any]] = LOG) -> am.Decisions:
    read = am.read_log(log, action="action", reward="reward", user="user", actions=ACTIONS)
    return read.by(*BY)


def sums_in(decisions: am.Decisions) -> dict[tuple[str, ...], list[tuple[int, int, int]]]:
    counts, sums = decisions.statistics.counts.tolist(), decisions.statistics.sums.tolist()
    each = zip(decisions.keys, counts, sums, strict=True)
    return {key: [(n, total, 0) for n, total in zip(own, totals, strict=True)] for key, own, totals in each}


# Keys, and what is served.


def test_a_vault_has_the_decisions_of_its_log(place: Place) -> None:
    decisions = in_log()
    found = am.LCB(confidence=0.001).decide(decisions.statistics).action
    with filled(place) as vault:
        assert held(vault) == sums_in(decisions)
        assert served(vault) == {
            key: (action, "learner") for key, action in zip(decisions.keys, found, strict=True)
        }
        assert vault.status().decisions == len(decisions) == 20
        assert vault.status().records == 400
        assert vault.verify().problems == ()
        again = vault.ingest(LOG, **COLUMNS)
        assert (again.already_there, again.decisions) == (400, 20)


def test_one_decision_is_named_by_its_whole_key(place: Place) -> None:
    with filled(place) as vault:
        all_served = served(vault)
        for age, interval in ((17, "<18"), (18, "18..30"), ("30..50", "30..50"), ("50", ">=50")):
            found = vault.decide(where={"country": "C1", "age": age})
            assert isinstance(found, Served)
            assert (found.action, found.by) == all_served["C1", interval]
            assert found.to_dict()["key"] == {"country": "C1", "age": interval}
        for where, sentence in (
            ({"country": "C1"}, "named by 'country', 'age'; 'age' is missing"),
            ({"country": "C9", "age": 20}, "no decision with the key {'country': 'C9', 'age': '18..30'}"),
            ({"country": "C1", "age": "old"}, r"key 'age' must be a number or one of '<18', .*; got 'old'"),
            ({"country": "C1", "age": 20, "page": 1}, "have the keys 'country', 'age'; got 'page'"),
        ):
            with pytest.raises(InvalidInputError, match=sentence):
                vault.decide(where=where)
        with pytest.raises(InvalidInputError, match="; 'country', 'age' are missing"):
            vault.decide()


def test_a_vault_without_keys_is_named_by_none(place: Place) -> None:
    with place.create(Configuration(actions=ACTIONS)) as vault:
        with pytest.raises(InvalidInputError, match="the vault has one decision, without key columns"):
            vault.decide(where={"country": "DE"})
        assert "decisions" not in vault.status().to_dict()
        assert vault.decisions().to_dict()["decisions"] == [{"key": {}, "action": "A", "by": "default"}]


def test_a_dry_run_says_how_many_decisions_there_would_be(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("armnesia.vault.state.incoming_rows.CHUNK", 7)
    with created(sqlite_place, most_decisions=21) as vault:
        assert vault.ingest(LOG, **COLUMNS, dry_run=True).decisions == 20
        assert vault.status().decisions == 0
        assert vault.ingest(LOG, **COLUMNS).decisions == 20
        ids, ages = [f"n{row}" for row in range(14)], [15] * 7 + [20] * 7
        new = {**visits(14, seed=2), "id": ids, "country": ["XX"] * 14, "age": ages}
        for dry_run in (True, False):  # two new keys, each in a chunk of its own
            with pytest.raises(InvalidInputError, match="make more than 21 decisions, the vault's limit"):
                vault.ingest(new, **COLUMNS, dry_run=dry_run)
        assert (vault.status().decisions, vault.n_records) == (20, 400)


def test_a_missing_or_long_key_is_refused(place: Place) -> None:
    with created(place) as vault:
        one = {name: column[:1] for name, column in LOG.items()}
        with pytest.raises(InvalidLogError, match="key column 'country' must have a value in every row"):
            vault.ingest(one | {"country": [None]}, **COLUMNS)
        with pytest.raises(InvalidInputError, match="the key of a decision must have at most 1,000 bytes"):
            vault.ingest(one | {"country": ["x" * 1000]}, **COLUMNS)
        assert vault.status().decisions == 0


def test_keys_of_forgotten_people_do_not_appear(place: Place) -> None:
    with filled(place) as vault:
        vault.forget(users=["u3"])
        new = {"action": ["A", "A"], "reward": [1, 1], "user": ["u3", "u4"], "id": ["n1", "n2"]}
        done = vault.ingest(new | {"country": ["Secret", "Public"], "age": [20, 20]}, **COLUMNS)
        assert (done.added, done.suppressed, done.decisions) == (1, 1, 21)
        assert {country for country, _ in held(vault)} == {*(f"C{n}" for n in range(5)), "Public"}


def test_keys_are_checked_when_a_vault_is_created(place: Place) -> None:
    for by, sentence in (
        (("country", "country"), "keys must be different columns"),
        ("country", "by must be a list of key columns; got the text 'country'"),
        ((am.KeyColumn("a:1"),), "whose name does not end like edges"),
        (("age:30,18",), "must be finite numbers that rise"),
    ):
        with pytest.raises(InvalidInputError, match=sentence):
            Configuration(actions=ACTIONS, by=by)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="most_decisions must be a whole number from 1"):
        Configuration(actions=ACTIONS, by=BY, most_decisions=0)
    with pytest.raises(UnsupportedError, match="tilt at level retained cannot answer requests in many"):
        Configuration(actions=ACTIONS, by=BY, unlearner_options={"assumed_share": 0.5}, **TILT)


# One request in all decisions.


def test_at_retained_nothing_says_which_decisions_were_touched(place: Place) -> None:
    with filled(place) as vault:
        done = vault.forget(users=["u7"])
        entry = vault.ledger().entries[-1]
        assert entry.facts["level"] == "retained"
        assert not {"decisions", "counts", "released"} & entry.facts.keys()
        assert done.certificate is not None
        said = done.certificate.words()
        text = entry.payload.decode() + " ".join(
            said.said
        )  # not the root of the checkpoint, which may have it
        assert "C1" not in text
        assert "18..30" not in text
        assert {by for _, by in served(vault).values()} <= {"learner", "default"}
        assert "ε = 0, δ = 0" in done.certificate.words().text()
        assert done.certificate.verify(vault.public_key()) == []


@pytest.mark.parametrize(
    "options", [TILT, FROZEN, {**TILT, "unlearner": "gaussian"}], ids=["tilt", "frozen", "gaussian"]
)
def test_where_the_shape_is_public_the_ledger_lists_the_decisions(
    place: Place, options: dict[str, Any]
) -> None:
    decisions = in_log()
    request = decisions.request(user="u7")
    with filled(place, **options) as vault:
        shown = vault.preview(users=["u7"])
        vault.forget(users=["u7"])
        entry = vault.ledger().entries[-1].facts
        assert entry["level"] == "request_shape"
        counts = {(each["key"]["country"], each["key"]["age"]): each["counts"] for each in entry["decisions"]}
        expected = dict(zip(decisions.keys, request.counts.tolist(), strict=True))
        assert counts == {key: own for key, own in expected.items() if any(own)}
        after = served(vault)
        for each in entry["decisions"]:
            assert after[each["key"]["country"], each["key"]["age"]] == (each["released"], "release")
        assert entry["budget"] == {
            "epsilon": options.get("epsilon", 0.0),
            "delta": options.get("delta", 0.0),
        }
        unlearner = vault.configuration.make_unlearner()
        joint = am.release_jointly(
            unlearner, am.LCB(confidence=0.001), decisions.statistics, request, vault.configuration.budget
        )
        probabilities = dict(zip(decisions.keys, joint.probabilities, strict=True))
        assert shown.decisions is not None
        for own, each in zip(shown.to_dict()["decisions"], shown.decisions, strict=True):
            key = tuple(each.key.values())
            np.testing.assert_allclose(list(own["probabilities"].values()), probabilities[key], atol=1e-12)
        assert vault.verify().problems == ()


def test_an_unlearner_that_would_reveal_how_many_decisions_it_answers_is_refused(place: Place) -> None:
    with filled(place, **TILT) as vault:
        head = vault.head
        for ask in (vault.forget, vault.preview):
            with pytest.raises(UnsupportedError, match="that level conceals how many there are; use roll"):
                ask(users=["u7"], unlearner_options={"assumed_share": 0.5})
        assert vault.head == head


def test_a_request_for_several_arms_falls_back_in_all_decisions(place: Place) -> None:
    policy = {"unlearner": "mixing", "epsilon": 1.0, "delta": 1e-5}
    log = LOG | {"reward": [int(reward) for reward in LOG["reward"]]}
    with filled(place, log, **policy) as vault:
        with pytest.raises(UnsupportedError):
            vault.forget(users=["u7"])
        vault.change_policy(beyond="rollback")
        done = vault.forget(users=["u7"])
        assert done.fallback_because is not None
        assert vault.ledger().entries[-1].facts["unlearner"]["name"] == "rollback"
        assert vault.verify().problems == ()


def test_a_request_reads_and_writes_the_touched_decisions_only(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = visits(3000, countries=300)
    with filled(sqlite_place, log) as vault:
        assert (vault.status().decisions or 0) > 800
        read: list[int] = []
        written: list[int] = []
        really_read, really_put = statements.read, statements.put

        def reading(session: Session, rows: Any, **where: Any) -> list[Any]:
            if rows is DecisionRow:
                assert where  # nobody reads them all
                read.extend(where.get("number", ()))
            return really_read(session, rows, **where)

        def putting(row: Any) -> Statement:
            written.extend([row.number] if isinstance(row, DecisionRow) else [])
            return really_put(row)

        monkeypatch.setattr(statements, "read", reading)
        monkeypatch.setattr(statements, "put", putting)
        monkeypatch.setattr(statements, "stream", None)
        done = vault.forget(records=["r1", "r2", "r3"])
        assert done.decisions is not None
        assert set(read) == set(written)
        assert len(written) == len(done.decisions) <= 3


def test_no_file_of_an_sqlite_vault_has_statistics_from_before(sqlite_place: Place) -> None:
    """Their difference to those of now is what was deleted."""

    def stored(vault: Vault) -> set[bytes]:
        return {text.encode() for (text,) in values(vault, "SELECT statistics FROM decision")}

    with filled(sqlite_place, visits(3000, countries=40)) as vault:
        before = stored(vault)
        for user in ("u7", "u8", "u9"):
            assert vault.forget(users=[user]).certificate is not None
            now = stored(vault)
            files = b"".join(path.read_bytes() for path in sqlite_place.path.parent.iterdir())
            assert len(before - now) > 1
            assert all(each in files for each in now)
            assert not [each for each in before - now if each in files]
            before = now


# What is noticed.


CHANGES = {
    "number": "UPDATE decision SET number = 99 WHERE number = 7",
    "statistics": "UPDATE decision SET statistics = replace(statistics, 'units', 'unit') WHERE number = 7",
    "served": "UPDATE decision SET served = 1 - served % 2 WHERE number = 7",
    "served by": "UPDATE decision SET served_by = 'chance' WHERE number = 7",
    "removed": "DELETE FROM decision WHERE number = 7",
}


@pytest.mark.parametrize("options", [{}, FROZEN], ids=["retained", "frozen"])
@pytest.mark.parametrize("what", ["statistics", "served", "served by"])
def test_rebuild_counts_changed_decisions_again(place: Place, what: str, options: dict[str, Any]) -> None:
    with filled(place, **options) as vault:
        vault.forget(users=["u7"])
        before, arms = held(vault), served(vault)
        change(vault, CHANGES[what])
        assert not Vault.restore(place.url, keys=place.keys, as_it_is=True).as_it_was
        assert held(vault) == before
        assert vault.verify().problems == ()
        if not options:
            assert served(vault) == arms
        assert Vault.restore(place.url, keys=place.keys).as_it_was


@pytest.mark.parametrize("what", ["number", "removed"])
def test_rebuild_refuses_rows_of_decisions_that_are_gone(sqlite_place: Place, what: str) -> None:
    with filled(sqlite_place) as vault:
        change(vault, CHANGES[what])
        with pytest.raises(VaultError, match="rows that no ingest stored"):
            Vault.restore(sqlite_place.url, keys=sqlite_place.keys, as_it_is=True)


def test_deleted_counts_that_the_ledger_does_not_have_are_found(place: Place) -> None:
    """Whoever has the keys could store them."""
    with filled(place, **FROZEN) as vault:
        vault.forget(users=["u7"])
        with vault.writing() as transaction:
            (first,) = read_decisions(transaction, [1])
            other = replace(first, statistics=replace(first.statistics, deleted=(9, 9, 9)))
            put_decisions(transaction, [other])
        assert vault.verify().problems == (
            "state: the numbers of deleted records are not those in the ledger",
        )


# External records.


def external(place: Place, tmp_path: Path) -> tuple[Vault, Path]:
    path = csv_file(tmp_path / "log.csv", LOG)
    vault = created(place, mode="external")
    assert vault.ingest(str(path), **COLUMNS).added == 400
    return vault, path


def test_a_row_that_moves_to_another_decision_at_its_source_is_noticed(place: Place, tmp_path: Path) -> None:
    vault, path = external(place, tmp_path)
    with vault:
        each = zip(LOG["user"], LOG["country"], strict=True)
        moved = LOG | {"country": ["C9" if user == "u7" else country for user, country in each]}
        csv_file(path, moved)
        assert any("has changed since it was counted" in problem for problem in vault.verify().problems)
        assert Vault.restore(place.url, keys=place.keys).recounted
        assert held(vault) == sums_in(in_log(moved))
        assert vault.verify().problems == ()
        assert vault.forget(users=["u7"]).decisions is not None


# What is served, signed.


def test_signed_decisions_are_checked_without_the_vault(place: Place) -> None:
    with filled(place) as vault:
        signed = vault.signed_decisions()
        said = {frozenset(each["key"].values()): each["action"] for each in signed.body["decisions"]}
        assert said == {frozenset(key): action for key, (action, _) in served(vault).items()}
        assert signed.body["head"] == str(vault.head)
        old_key = vault.public_key()
        assert signed.verify(old_key) == []
        vault.rotate_signing_key(compromised_since=1)
        keys = vault.public_keys().keys
        assert signed.verify(keys) == ["the served arms are not signed by a key that was given"]
        later = vault.signed_decisions()
        assert later.verify(keys) == []
        assert later.verify(old_key) == ["the served arms are not signed by a key that was given"]
    other = json.loads(json.dumps(signed.to_dict()))
    other["payload"] = other["payload"].replace("Q", "R", 1)
    with suppress(InvalidInputError):
        assert SignedDecisions.from_dict(other).verify(old_key) != []
