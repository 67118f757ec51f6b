"""A person has one name in a vault, however a log or a request spells it; a misspelt request is refused."""

import tempfile
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armnesia.core.errors import (
    ArmnesiaError,
    InvalidInputError,
    VaultError,
)
from armnesia.vault import EXTERNAL, MANAGED, Certificate, Configuration, UserType, Vault
from armnesia.vault.operations import ingest as ingest_operation
from armnesia.vault.state import source_columns
from tests.databases import Place, fresh_place
from tests.vault.raw_vaults import Snapshot, change, dumped, values

pytestmark = pytest.mark.slow  # the promise tests go the main ways quickly

INTEGER, TEXT = UserType.INTEGER, UserType.TEXT
NFC, NFD = "Zo\u00eb", "Zoe\u0308"

modes = pytest.mark.parametrize("mode", [MANAGED, EXTERNAL])


def made(place: Place, mode: str = MANAGED, user_type: UserType | None = None) -> Vault:
    return place.create(Configuration(actions=("A", "B"), mode=mode, user_type=user_type))


def write(path: Path, users: list[Any], first_id: int | None = None) -> str:
    """A CSV file with a row per user; with ids from `first_id` on."""
    ids = [] if first_id is None else [f"e{first_id + place}" for place in range(len(users))]
    rows = [f'{"AB"[place % 2]},1,"{user}",{place}' for place, user in enumerate(users)]
    rows = [",".join(pair) for pair in zip(rows, ids, strict=True)] if ids else rows
    header = "action,reward,user,minute" + (",id" if ids else "")
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return str(path)


@contextmanager
def nothing_written(vault: Vault) -> Iterator[None]:
    before, head, pin = dumped(vault), vault.head, Path(f"{vault.keys_path}.head").read_bytes()
    yield
    assert (dumped(vault), vault.head, Path(f"{vault.keys_path}.head").read_bytes()) == (before, head, pin)


# What the spellings of one person are.


def person(certificate: Certificate) -> str:
    """Whom a certificate is about."""
    assert certificate.person is not None
    return certificate.person.text


@modes
def test_an_integer_is_one_person_in_every_spelling(place: Place, tmp_path: Path, mode: str) -> None:
    spellings = ["1.0", "2.0", "01", " 1", "+1", "11", "1", "10.0"]
    names = [1, 1.0, "1", "1.0", "01", " 1 ", "+1", np.int64(1), np.float64(1)]
    with made(place, mode, INTEGER) as vault:
        assert vault.ingest(write(tmp_path / "log.csv", spellings), user="user").added == 8
        for name in names:
            assert vault.preview(users=[name]).records == 5
        done = vault.forget(users=names)
        assert (done.named, done.held, done.records) == (1, 1, 5)
        assert done.certificate is not None
        assert person(done.certificate) == "1"
        for name in names:
            assert vault.forget(users=[name]).repeated
            assert vault.preview(users=[name]).repeated
            assert vault.certificate(users=[name]) == vault.certificate(users=["1"])
        again = vault.ingest(write(tmp_path / "again.csv", [*spellings, "1.0"]), user="user")
        external = mode == EXTERNAL  # where the rows of a second file are others
        assert (again.suppressed, again.added) == (6, 3 * external)
        assert vault.verify().problems == ()
        assert Vault.restore(place.url, keys=place.keys).as_it_was
        assert vault.readmit(users=["+1"]).readmitted == 1
        back = vault.ingest(str(tmp_path / "again.csv"), user="user")
        assert back.added == (5 + 6 if external else 6)
        assert vault.verify().problems == ()


@modes
@pytest.mark.parametrize(("held", "asked"), [(NFC, NFD), (NFD, NFC), (" ann", "ann"), ("ann", "ann\t")])
@pytest.mark.filterwarnings("ignore:user column 'user' has white space")
def test_text_is_one_person_in_both_normal_forms_and_with_spaces_around(
    place: Place, tmp_path: Path, mode: str, held: str, asked: str
) -> None:
    with made(place, mode) as vault:
        came_in = vault.ingest(write(tmp_path / "log.csv", [held, "bob", held]), user="user")
        assert (came_in.added, came_in.user_type_fixed) == (3, TEXT)
        done = vault.forget(users=[asked, "bob", held])
        assert (done.named, done.held, done.records) == (2, 2, 3)
        one = unicodedata.normalize("NFC", held).strip()
        for name in (held, asked, one):
            certificate = vault.certificate(users=[name])
            assert person(certificate) == one
        both = [held, "bob", asked]
        assert vault.ingest(write(tmp_path / "again.csv", both), user="user").suppressed == 3
        assert vault.verify().problems == ()


def test_the_same_rows_come_in_once_from_parquet_and_from_csv(place: Place, tmp_path: Path) -> None:
    table = pd.DataFrame(
        {"action": ["A", "B", "A"], "reward": [1, 0, 1], "user": [1, 2, 3], "minute": [0, 1, 2]}
    )
    table.to_parquet(tmp_path / "integers.parquet")
    table.astype({"user": float}).to_csv(tmp_path / "floats.csv", index=False)
    table.astype({"user": float}).to_parquet(tmp_path / "floats.parquet")
    assert "1.0" in (tmp_path / "floats.csv").read_text()
    with made(place) as vault:
        first = vault.ingest(str(tmp_path / "integers.parquet"), user="user")
        assert (first.added, first.user_type_fixed) == (3, INTEGER)
        for other in ("floats.csv", "floats.parquet", "integers.parquet"):
            again = vault.ingest(str(tmp_path / other), user="user")
            assert (again.added, again.already_there, again.user_type_fixed) == (0, 3, None)
        assert vault.forget(users=["2.0"]).records == 1
        assert vault.verify().problems == ()


def test_equal_rows_stay_two_rows_in_any_spelling(place: Place, tmp_path: Path) -> None:
    rows = "action,reward,user,minute\nA,1,7.0,0\nA,1,8,0\nA,1,7,0\nA,1,07,0\n"
    (tmp_path / "log.csv").write_text(rows)
    with made(place, EXTERNAL, INTEGER) as vault:
        assert vault.ingest(str(tmp_path / "log.csv"), user="user").added == 4
        assert vault.ingest(str(tmp_path / "log.csv"), user="user").rows == 0
        assert vault.verify().problems == ()
        assert vault.forget(users=[7]).records == 3
        assert vault.verify().problems == ()


# Requests for similar names.


def test_a_request_for_a_stranger_is_certified(place: Place, tmp_path: Path) -> None:
    with made(place) as vault:
        vault.ingest(write(tmp_path / "log.csv", ["ann", "bob"]), user="user")
        assert vault.forget(users=["zoe", "u-7"]).held == 0
        assert vault.verify().holds


# How the type is fixed, and where it is kept.


@modes
@pytest.mark.parametrize(
    ("users", "expected"), [(["1", "20"], INTEGER), (["1", "02"], TEXT), (["1", "ann"], TEXT)]
)
def test_the_first_ingest_with_users_fixes_the_type(
    place: Place, tmp_path: Path, mode: str, users: list[str], expected: UserType
) -> None:
    with made(place, mode) as vault:
        nobody = write(tmp_path / "nobody.csv", ["", ""])
        assert vault.ingest(nobody, user="user").user_type_fixed is None
        other = write(tmp_path / "other.csv", ["", ""])
        assert vault.ingest(other, user=None, no_user=True).user_type_fixed is None
        assert vault.configuration.user_type is None
        done = vault.ingest(write(tmp_path / "log.csv", users), user="user")
        assert done.user_type_fixed is expected
        assert str(vault.configuration.user_type) == expected.value
        assert done.to_dict()["user_type_fixed"] == expected.value
        assert vault.ingest(write(tmp_path / "more.csv", ["5", "6"]), user="user").user_type_fixed is None
        assert [entry.kind for entry in vault.ledger().entries] == ["init", "configured", "configured"]
        assert vault.ledger().entries[2].facts["configuration"]["user_type"] == expected.value
        assert vault.verify(vault.checkpoint()).holds
        if mode == MANAGED:
            ((told,),) = values(vault, "SELECT configuration FROM vault")
            wrong = "text" if expected is INTEGER else "integer"
            change(vault, "UPDATE vault SET configuration = ?", told.replace(expected.value, wrong))
            with pytest.raises(VaultError, match="were changed by something other than armnesia"):
                vault.forget(users=["5"])
            assert not vault.verify().holds
            assert not Vault.restore(
                place.url, keys=place.keys, as_it_is=True
            ).as_it_was  # by what the ledger tells
            assert values(vault, "SELECT configuration FROM vault") == [(told,)]
        assert vault.forget(users=["5"]).records == 1


def test_a_declared_type_stands_in_the_first_entry(place: Place, tmp_path: Path) -> None:
    with made(place, MANAGED, INTEGER) as vault:
        vault.ingest(write(tmp_path / "log.csv", ["1.0", "2.0"]), user="user")
        assert vault.ledger().entries[0].facts["configuration"]["user_type"] == "integer"
    with place.open() as vault:
        assert vault.configuration.user_type is INTEGER
        assert vault.status().configuration.user_type is INTEGER
    for wrong in ("number", 7):
        with pytest.raises(InvalidInputError, match="user_type must be integer or text"):
            Configuration(actions=("A", "B"), user_type=wrong)  # type: ignore[arg-type]


def test_white_space_around_names_is_no_part_of_them(place: Place, tmp_path: Path) -> None:
    with made(place) as vault:
        vault.ingest(write(tmp_path / "log.csv", ["ann", " ann", "bob"]), user="user")
        assert vault.forget(users=["ann"]).records == 2


@modes
def test_a_backup_from_before_the_type_is_brought_up_to_it(place: Place, tmp_path: Path, mode: str) -> None:
    vault = made(place, mode)
    backup = Snapshot(place, vault, tmp_path)
    file = write(tmp_path / "log.csv", ["1", "2", "3"])
    vault.ingest(file, user="user")
    vault.forget(users=["1.0"])
    vault.close()
    backup.put_back()
    Vault.restore(place.url, keys=place.keys)
    with place.open() as vault:
        assert vault.configuration.user_type is INTEGER
        done = vault.ingest(write(tmp_path / "log.csv", ["1.0", "2.0", "3"]), user="user")
        assert (done.suppressed, done.added) == (1, 2)
        assert vault.verify().problems == ()


# External vaults: the names at the sources.


def test_rows_that_vanished_are_not_counted_any_more(place: Place, tmp_path: Path) -> None:
    with made(place, EXTERNAL, INTEGER) as vault:
        file = write(tmp_path / "log.csv", ["1.0", "2", "1"])
        vault.ingest(file, user="user")
        write(tmp_path / "log.csv", ["1.0", "2"])
        assert vault.forget(users=["1"]).records == 1


# Several processes.


def test_two_first_ingests_that_name_people_otherwise(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = source_columns.user_type_for
    with made(place) as vault, place.open() as faster:

        def overtaken(*arguments: Any) -> Any:
            found = chosen(*arguments)
            monkeypatch.setattr(ingest_operation, "user_type_for", chosen)
            faster.ingest(write(tmp_path / "text.csv", ["ann", "bob"]), user="user")
            return found

        monkeypatch.setattr(ingest_operation, "user_type_for", overtaken)
        file = write(tmp_path / "integers.csv", ["1", "2"])
        with pytest.raises(
            VaultError, match="the configuration of the vault was changed meanwhile; ingest again"
        ):
            vault.ingest(file, user="user")
        assert vault.status().records == 2
        assert vault.ingest(file, user="user").added == 2  # as text
        assert vault.configuration.user_type is TEXT
        assert vault.verify().holds


# Random logs and requests, against counting in plain Python.

SPELL: list[Callable[[int], Any]] = [
    int,
    float,
    str,
    lambda number: f"{number}.0",
    lambda number: f" {number}\t",
    lambda number: f"{'-' if number < 0 else '+'}00{abs(number)}",
]
SPELLED = st.tuples(st.integers(-3, 3), st.sampled_from(SPELL))


@pytest.mark.slow
@modes
@settings(max_examples=12, deadline=None)
@given(
    batches=st.lists(st.lists(SPELLED, min_size=1, max_size=6), min_size=1, max_size=3),
    requests=st.lists(st.lists(SPELLED, min_size=1, max_size=3), min_size=1, max_size=4),
)
def test_any_spelling_of_any_integer(
    mode: str,
    batches: list[list[tuple[int, Callable[[int], Any]]]],
    requests: list[list[tuple[int, Callable[[int], Any]]]],
) -> None:
    held: Counter[int] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with made(fresh_place("sqlite", folder), mode, INTEGER) as vault:
            first_id = 0
            for number, batch in enumerate(batches):
                users = [spell(user) for user, spell in batch]
                file = write(folder / f"{number}.csv", users, first_id)
                assert vault.ingest(file, user="user", id="id").added == len(users)
                first_id += len(users)
                held.update(user for user, _ in batch)
            forgotten: set[int] = set()
            for request in requests:
                people = {user for user, _ in request}
                done = vault.forget(users=[spell(user) for user, spell in request])
                assert (done.records, done.named) == (sum(held.pop(user, 0) for user in people), len(people))
                forgotten |= people
                for user, spell in request:
                    assert person(vault.certificate(users=[spell(user)])) == str(user)
            assert vault.status().records == sum(held.values())
            for number, batch in enumerate(batches):
                file = write(folder / f"new-{number}.csv", [f"{user}.00" for user, _ in batch], first_id)
                kept_out = sum(user in forgotten for user, _ in batch)
                assert vault.ingest(file, user="user", id="id").suppressed == kept_out
                first_id += len(batch)
            assert vault.verify().problems == ()


@settings(max_examples=8, deadline=None)
@given(users=st.lists(st.text(max_size=5), min_size=1, max_size=5), asked=st.text(min_size=1, max_size=5))
def test_no_text_is_certified_as_not_held_while_it_is_held(users: list[str], asked: str) -> None:
    """Whatever the letters: rows of the same text in NFC are forgotten, or the request is refused."""
    same = [
        unicodedata.normalize("NFC", user).strip() == unicodedata.normalize("NFC", asked).strip()
        for user in users
    ]
    with (
        tempfile.TemporaryDirectory() as name,
        made(fresh_place("sqlite", Path(name)), MANAGED, TEXT) as vault,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        frame = {"action": ["A"] * len(users), "reward": [1] * len(users), "user": users}
        vault.ingest(frame | {"id": list(range(len(users)))}, user="user", id="id")
        try:
            done = vault.forget(users=[asked])
        except ArmnesiaError:
            assert not asked.strip() or not all(same)
        else:
            assert done.records == sum(same)
