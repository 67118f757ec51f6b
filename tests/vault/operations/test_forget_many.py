"""Requests that are answered together: the same as one by one, whoever of them is refused."""

import csv
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from armnesia.core.errors import (
    ArmnesiaError,
    DatabaseError,
    InvalidInputError,
    SimilarNameError,
    VaultBusyError,
    VaultError,
)
from armnesia.vault import Configuration, ForgetRequest, Forgotten, UserType, Vault
from armnesia.vault.operations import forget
from armnesia.vault.state import released_request
from armnesia.vault.storage import tables
from tests.databases import Place, fresh_place
from tests.vault.raw_vaults import filled, values

PEOPLE = [f"u{number}" for number in range(6)]
CHANGING = {"time", "previous", "commitment"}
"""What two equal histories differ in: the times, the hashes of the chain, and salted commitments."""


def log(rows: int = 60) -> dict[str, list[Any]]:
    draw = random.Random(7)
    return {
        "action": [draw.choice("ABC") for _ in range(rows)],
        "reward": [draw.choice([0, 1, 0.5]) for _ in range(rows)],
        "user": [draw.choice(PEOPLE) for _ in range(rows)],
        "id": [f"r{row}" for row in range(rows)],
        "page": [draw.choice(["home", "shop"]) for _ in range(rows)],
    }


def write_csv(path: Path, columns: dict[str, list[Any]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


@contextmanager
def twins(database: str, folder: Path, configuration: Configuration) -> Iterator[tuple[Vault, Vault]]:
    """Two vaults with the same keys, rows and ledger."""
    folder.mkdir()
    one, other = fresh_place(database, folder), fresh_place(database, folder)
    with one.create(configuration) as first:
        external = configuration.mode == "external"
        source: Any = write_csv(folder / "log.csv", log()) if external else log()
        first.ingest(source, user="user", id="id")
        first.copy_to(other.url, keys=other.keys)
        with other.open() as second:
            yield first, second


def one_by_one(vault: Vault, requests: list[ForgetRequest]) -> list[Forgotten | ArmnesiaError]:
    results: list[Forgotten | ArmnesiaError] = []
    for request in requests:
        try:
            results.append(vault.forget(**vars(request)))
        except ArmnesiaError as error:
            results.append(error)
    return results


def told(result: Forgotten | ArmnesiaError) -> tuple[Any, ...]:
    """What a result says, without times, signatures and the head at which it was signed."""
    if isinstance(result, ArmnesiaError):
        return type(result), str(result)
    facts = {
        name: value
        for name, value in result.to_dict().items()
        if name not in {"head", "certificate", "commitment", "issued", "time", "entry_hash"}
    }
    return facts, result.certificate.body["sequence"], result.certificate.opening is None


def held(vault: Vault) -> dict[str, Any]:
    """Everything that requests change in a vault."""
    tables = {
        "decision": "SELECT number, key, statistics, served, served_by FROM decision ORDER BY number",
        "suppressed": "SELECT digest, kind, since, readmitted FROM suppressed ORDER BY digest",
        "request": "SELECT digest, sequence FROM request ORDER BY digest",
        "certificate": "SELECT sequence FROM certificate ORDER BY sequence",
    }
    if vault.configuration.mode == "managed":
        tables |= {
            "record": "SELECT * FROM record ORDER BY identity",
            "owner": "SELECT * FROM owner ORDER BY owner",
        }
    entries = [
        {name: value for name, value in entry.fields.items() if name not in CHANGING}
        for entry in vault.ledger()
    ]
    return {"ledger": entries, **{name: values(vault, sql) for name, sql in tables.items()}}


names = st.sampled_from([*PEOPLE, "U1", " u2", "nobody", "u3.0"])
users = st.lists(names, max_size=3) | st.just([*PEOPLE, *(f"x{number}" for number in range(6))])
requests = st.builds(
    ForgetRequest, users=users, exactly=st.booleans(), epsilon=st.sampled_from([None, None, -1.0])
) | st.builds(ForgetRequest, records=st.lists(st.sampled_from(["r1", "r2", "R2", "r99"]), max_size=2))

CONFIGURATIONS = {
    "one": Configuration(actions=("A", "B", "C"), user_type=UserType.TEXT),
    "many": Configuration(actions=("A", "B", "C"), by=("page",), user_type=UserType.TEXT),
    "external": Configuration(actions=("A", "B", "C"), mode="external", user_type=UserType.TEXT),
}


@pytest.mark.parametrize("kind", CONFIGURATIONS)
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(batches=st.lists(st.lists(requests, max_size=5), min_size=1, max_size=2))
def test_together_is_as_one_by_one(
    kind: str, database: str, batches: list[list[ForgetRequest]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("twins") / "vaults"
    with twins(database, folder, CONFIGURATIONS[kind]) as (together, alone):
        for batch in batches:
            first, second = together.forget_many(batch), one_by_one(alone, batch)
            assert [told(result) for result in first] == [told(result) for result in second]
        assert held(together) == held(alone)
        assert together.verify().problems == ()
        keys = together.public_keys()
        for result in first:
            if isinstance(result, Forgotten):
                assert result.certificate.verify(keys) == []


def test_a_refused_request_does_not_harm_the_others(place: Place) -> None:
    with filled(place) as vault:
        before = vault.head.sequence
        ann, nobody, similar, bob, again = vault.forget_many(
            [
                ForgetRequest(users=["ann"]),
                ForgetRequest(users=[]),
                ForgetRequest(users=["Cem"]),
                ForgetRequest(users=["bob"]),
                ForgetRequest(users=["ann"]),
            ]
        )
        assert isinstance(nobody, InvalidInputError)
        assert isinstance(similar, SimilarNameError)
        assert similar.similar == {"Cem": ("cem",)}
        assert isinstance(ann, Forgotten)
        assert isinstance(bob, Forgotten)
        assert isinstance(again, Forgotten)
        assert (ann.records, bob.records, again.records, again.repeated) == (2, 1, 0, True)
        entries = [each.certificate.body["sequence"] for each in (ann, bob, again)]
        assert entries == [before + 1, before + 2, before + 1]
        assert vault.head.sequence == before + 2
        assert ann.head == bob.head == vault.head
        assert vault.n_records == 3
        assert vault.verify().holds


def test_requests_that_are_all_refused_change_nothing(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        before = held(vault)
        results = vault.forget_many([ForgetRequest(), ForgetRequest(users=["Ann"]), ForgetRequest(users="x")])
        assert [type(result) for result in results] == [
            InvalidInputError,
            SimilarNameError,
            InvalidInputError,
        ]
        assert vault.forget_many([]) == []
        assert held(vault) == before


def test_one_commit_and_one_erase(sqlite_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with filled(sqlite_place) as vault:
        database = vault._connection.database
        commits, erased, erase = [], [], database.erase
        database._connection.set_trace_callback(  # type: ignore[attr-defined]
            lambda sql: commits.append(sql) if sql.startswith("COMMIT") else None
        )

        def counted_erase(**options: Any) -> bool:
            erased.append(1)
            return erase(**options)

        monkeypatch.setattr(database, "erase", counted_erase)
        vault.forget(users=["dan"])
        alone = len(commits), len(erased)
        vault.forget_many([ForgetRequest(users=[name]) for name in ("ann", "bob", "cem")])
        assert (len(commits) - alone[0], len(erased) - alone[1]) == alone


def test_a_failure_that_is_no_refusal_rolls_all_of_them_back(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(place) as vault:
        before, release = held(vault), released_request.release_within_policy

        def fail(configuration: Any, touched: Any, resolved: Any) -> Any:
            if touched.request.counts.sum() == 1:
                raise MemoryError
            return release(configuration, touched, resolved)

        monkeypatch.setattr(released_request, "release_within_policy", fail)
        with pytest.raises(MemoryError):
            vault.forget_many([ForgetRequest(users=["ann"]), ForgetRequest(users=["bob"])])
        assert held(vault) == before


def test_a_locked_vault_refuses_all_of_them(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault, sqlite_place.open(timeout=0.1) as other:
        with vault._connection.database.writing(), pytest.raises(VaultBusyError):
            other.forget_many([ForgetRequest(users=["ann"])])
        assert vault.n_records == 6


def test_what_a_refused_request_collected_is_left_out(place: Place) -> None:
    """A refusal at the very end, with statements and an entry collected, leaves neither."""
    with filled(place) as vault:
        before = held(vault)
        with vault._connection.writing() as transaction:
            state = transaction.state
            with suppress(InvalidInputError), transaction.attempt():
                transaction.append("readmit", readmitted=1, erased=False)
                tables.delete_records(
                    transaction.session,
                    vault._connection.records.layout,
                    "owner",
                    vault._connection.all_keys.owner_digests(["ann"]),
                )
                transaction.store(state)
                transaction.add(tables.delete_row("suppressed", b"1"))
                raise InvalidInputError("refused at the end")
            assert transaction.state is state
            assert transaction.stored is None
        assert json.dumps(held(vault), default=str) == json.dumps(before, default=str)


@pytest.mark.parametrize("error", [DatabaseError, VaultBusyError])
@pytest.mark.parametrize("step", ["_look_up", "_answer"])
def test_what_the_database_refuses_is_no_matter_of_one_request(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch, step: str, error: type[VaultError]
) -> None:
    """Whoever called must know that the connection may be lost."""
    with filled(sqlite_place) as vault:
        before, real, calls = held(vault), getattr(forget, step), list[int]()

        def fail_second(*arguments: Any) -> Any:
            calls.append(1)
            if len(calls) == 2:
                raise error("lost")
            return real(*arguments)

        monkeypatch.setattr(forget, step, fail_second)
        with pytest.raises(error, match="lost"):
            vault.forget_many([ForgetRequest(users=["ann"]), ForgetRequest(users=["bob"])])
        monkeypatch.undo()
        assert held(vault) == before


def test_what_is_stored_is_told_though_the_database_is_lost_then(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(sqlite_place) as vault:
        vault.forget(users=["ann"])

        def lose(*_: Any) -> Any:
            raise DatabaseError("lost")

        monkeypatch.setattr(forget, "_repeated", lose)
        again, bob = vault.forget_many([ForgetRequest(users=["ann"]), ForgetRequest(users=["bob"])])
        assert isinstance(again, DatabaseError)
        assert isinstance(bob, Forgotten)
        assert bob.held == 1


def test_the_number_of_statements_does_not_grow_with_a_group(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statements that are sent together count as one: on a server they are one round trip."""
    sent = 0

    def counted(real: Any, *arguments: Any) -> Any:
        nonlocal sent
        sent += 1
        return real(*arguments)

    def statements_of(*names: str) -> int:
        nonlocal sent
        sent = 0
        results = vault.forget_many([ForgetRequest(users=[name]) for name in names])
        assert all(isinstance(result, Forgotten) for result in results)
        return sent

    people = [chr(letter) * 3 for letter in range(ord("a"), ord("z"))]
    rows = {"action": ["A"] * 15, "reward": [1] * 15, "user": people[:5] * 3}
    with place.create(Configuration(actions=("A", "B"), user_type=UserType.TEXT)) as vault:
        vault.ingest(rows, user="user")
        with vault._connection.database.reading() as session:
            kind = type(session)
        for name in ("query", "execute", "execute_together"):
            real = getattr(kind, name)
            monkeypatch.setattr(kind, name, lambda *arguments, real=real: counted(real, *arguments))
        assert statements_of(*people[:3]) == statements_of(*people[3:5])
        # Other spellings of people who have no rows are looked up for each request.
        assert statements_of(*people[5:8]) > statements_of(*people[8:10])
        monkeypatch.undo()
        assert vault.n_records == 0
        assert vault.verify().holds


def test_a_person_whose_records_are_damaged_is_refused_alone(place: Place) -> None:
    with filled(place) as vault:
        (bob,) = vault._connection.all_keys.owner_digests(["bob"])
        with vault._connection.database.writing() as session:
            session.execute("UPDATE owner SET records = records + 1 WHERE owner = ?", bob)
        ann, bobs, cem = vault.forget_many([ForgetRequest(users=[name]) for name in ("ann", "bob", "cem")])
        assert isinstance(ann, Forgotten)
        assert isinstance(bobs, VaultError)
        assert "the records found are not those that the vault has counted" in str(bobs)
        assert isinstance(cem, Forgotten)
        assert [entry.kind for entry in vault.ledger()].count("forget") == 2


def test_a_deletion_that_skips_a_row_changes_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    delete = tables.delete_records
    with filled(place) as vault:
        before = held(vault)
        monkeypatch.setattr(tables, "delete_records", lambda *arguments: delete(*arguments)[1:])
        with pytest.raises(VaultError, match="the records found are not those"):
            vault.forget_many([ForgetRequest(users=["ann"]), ForgetRequest(users=["bob"])])
        monkeypatch.undo()
        assert held(vault) == before


def test_a_spelling_counts_as_long_as_the_vault_holds_its_rows(place: Place) -> None:
    with filled(place) as vault:
        early, ann, late, refused, bob = vault.forget_many(
            [ForgetRequest(users=[name]) for name in ("Ann", "ann", "ANN", "Cem", "bob")]
        )
        assert isinstance(early, SimilarNameError)
        assert isinstance(ann, Forgotten)
        assert isinstance(late, Forgotten)
        assert (ann.records, late.records) == (2, 0)
        assert isinstance(refused, SimilarNameError)
        assert isinstance(bob, Forgotten)
        assert vault.verify().holds
