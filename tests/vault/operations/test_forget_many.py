"""Requests that are answered together: the same as one by one, whoever of them is refused."""

import csv
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from armnesia.core.errors import (
    ArmnesiaError,
    InvalidInputError,
    SimilarNameError,
    VaultBusyError,
)
from armnesia.vault import Configuration, ForgetRequest, Forgotten, UserType, Vault
from armnesia.vault.state import released_request
from tests.databases import Place, fresh_place
from tests.vault.raw_vaults import copy_to, filled, values

PEOPLE = [f"u{number}" for number in range(6)]


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
        copy_to(first, one, other)
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
    facts = {name: value for name, value in result.to_dict().items() if name not in ("head", "certificate")}
    facts["forgotten_before"] = [(each.entry, each.names) for each in result.forgotten_before]
    return facts, None if result.certificate is None else result.certificate.entry.number


def held(vault: Vault) -> dict[str, Any]:
    """Everything that requests change in a vault."""
    tables = {
        "decision": "SELECT number, key, statistics, served, served_by FROM decision ORDER BY number",
        "suppressed": "SELECT digest, kind, since, readmitted FROM suppressed ORDER BY digest",
        "people": "SELECT number FROM people ORDER BY number",
    }
    if vault.configuration.mode == "managed":
        tables["record"] = "SELECT * FROM record ORDER BY identity"
    entries = [(entry.number, entry.kind, dict(entry.facts)) for entry in vault.ledger().entries]
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


@pytest.mark.sampled(1)
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
        keys = together.public_keys().keys
        for result in first:
            if isinstance(result, Forgotten) and result.certificate is not None:
                assert result.certificate.verify(keys) == []


def test_a_refused_request_does_not_harm_the_others(place: Place) -> None:
    with filled(place) as vault:
        before = vault.head.size
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
        entries = [each.entry for each in (ann, bob, again)]
        assert entries == [before + 1, before + 2, before + 1]
        assert vault.head.size == before + 2
        assert bob.head == again.head == vault.head
        assert vault.n_records == 3
        assert vault.verify().holds


def test_a_failure_that_is_no_refusal_rolls_all_of_them_back(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(place) as vault:
        before, release = held(vault), released_request.answer_within_policy

        def fail(configuration: Any, touched: Any, resolved: Any) -> Any:
            if touched.records.counts.sum() == 1:
                raise MemoryError
            return release(configuration, touched, resolved)

        monkeypatch.setattr(released_request, "answer_within_policy", fail)
        with pytest.raises(MemoryError):
            vault.forget_many([ForgetRequest(users=["ann"]), ForgetRequest(users=["bob"])])
        assert held(vault) == before


def test_a_locked_vault_refuses_all_of_them(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault, sqlite_place.open(timeout=0.1) as other:
        with vault.database.writing(), pytest.raises(VaultBusyError):
            other.forget_many([ForgetRequest(users=["ann"])])
        assert vault.n_records == 6
