"""No certificate says "nothing held" of a name while the vault holds it in a spelling that looks the same."""

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from armnesia.core.errors import InvalidInputError, SimilarNameError
from armnesia.logs.values import LONGEST_TEXT
from armnesia.vault import Configuration, Forgotten, UserType, Vault
from armnesia.vault.operations import forget as forget_operation
from armnesia.vault.state.similar_names import records_compared_before
from tests.databases import Place
from tests.vault.raw_vaults import change

PAIRS = [
    ("1.00", "1"),
    ("+1", "1"),
    ("1e16", "10000000000000000"),
    ("ann\u200b", "ann"),
    ("ann\ufeff", "ann"),
    ("ann\0", "ann"),
    ("\uff11\uff12", "12"),
    ("\ufb01ona", "fiona"),
    ("Stra\u00dfe", "STRASSE"),
    ("\u0430", "a"),
    ("ann lee", "annlee"),
    ("McDonald", "mcdonald"),
    ("jdoe@gmail.com", "j.doe@gmail.com"),
    ("user-17", "user-1-7"),
    ("-5", "5"),
    ("3.0e2", "300"),
    ("{6F9619FF-8B86-D011-B42D-00C04FC964FF}", "6f9619ff8b86d011b42d00c04fc964ff"),
    ("2026-01-02", "2026-01-02 00:00:00"),
    ("ann%40ex.org", "ann@ex.org"),
    ("\u2066ann\u2069", "ann"),
    ("+491701234567", "\u202a+491701234567\u202c"),
    ("user-\uff11\uff12", "user-12"),
    ("iPhone-7", "iphone-7"),
    ("ann.lee@EX.ORG", "ann.lee@ex.org"),
    ("2026-01-02 03:04:05+00", "2026-01-02 03:04:05"),
]


def holding(place: Place, *users: str) -> Vault:
    vault = place.create(Configuration(actions=("A", "B"), user_type=UserType.TEXT))
    log = {
        "action": ["A"] * len(users),
        "reward": [1] * len(users),
        "user": list(users),
        "id": [f"e{place}" for place in range(len(users))],
    }
    vault.ingest(log, user="user", id="id")
    return vault


@pytest.mark.parametrize(("one", "other"), [*PAIRS, *((asked, held) for held, asked in PAIRS)])
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.filterwarnings("ignore:user column 'user' ")
def test_either_spelling_leads_to_the_other(place: Place, one: str, other: str) -> None:
    with holding(place, one, "bob") as vault:
        with pytest.raises(SimilarNameError) as raised:
            vault.forget(users=[other])
        assert raised.value.similar == {other: (one,)}
        assert vault.forget(users=[one]).records == 1
        assert vault.verify().holds


@pytest.mark.parametrize("asked", ["cid,dan", "cid; dan", "cid,dan,nobody"])
def test_a_list_in_one_name_is_refused_with_its_parts(place: Place, asked: str) -> None:
    with holding(place, "cid", "dan") as vault:
        for request in (vault.preview, vault.forget):
            with pytest.raises(SimilarNameError, match="rows of 'cid' and 'dan', which may be user"):
                request(users=[asked])
        assert vault.forget(users=["cid", "dan"]).records == 2


def test_an_invisible_character_at_an_end_is_refused_unless_the_name_is_held_so(place: Place) -> None:
    with holding(place, "bob", "eve\u2063") as vault:
        for asked in ("cid\u2063", "\u202acid"):
            with pytest.raises(InvalidInputError, match="or an invisible one at an end"):
                vault.forget(users=[asked])
        assert vault.forget(users=["cid\u2063"], exactly=True).held == 0
        assert vault.forget(users=["eve\u2063"]).records == 1
        assert vault.verify().holds


def test_a_control_character_is_refused_unless_the_name_is_held_so(place: Place) -> None:
    with holding(place, "bob", "eve\0") as vault:
        for request in (vault.preview, vault.forget):
            with pytest.raises(InvalidInputError, match=r"the name 'cid\\x00' has a control character"):
                request(users=["cid\0"])
        assert vault.forget(users=["eve\0"]).records == 1
        assert vault.forget(users=["cid\0"], exactly=True).held == 0
        assert vault.forget(users=["cid\0"]).repeated
        assert vault.verify().holds


@pytest.mark.parametrize("kind", ["user", "id"])
@pytest.mark.parametrize(
    ("value", "in_csv"),
    [
        (pd.Timestamp("2020-01-02"), "2020-1-2"),
        (np.datetime64("2020-01-02"), "2020/01/02"),
        (datetime(2020, 1, 2, 3, 4), "2020-01-02 3:04"),
        (pd.Timedelta(days=1), "1 days 00:00:00.000000000"),
        (np.float32(0.1), "0.1"),
        (b"ann", "b'ann'"),
    ],
)
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_value_that_files_write_otherwise_is_refused_unless_it_is_held_so(
    place: Place, tmp_path: Path, kind: str, value: Any, in_csv: str
) -> None:
    path = tmp_path / "log.csv"
    columns: dict[str, Any] = {kind: kind, "no_user": kind != "user"}
    kinds = "users" if kind == "user" else "records"
    asked: dict[str, Any] = {kinds: [value]}
    as_written: dict[str, Any] = {kinds: [in_csv]}
    path.write_text(f"action,reward,{kind}\nA,1,{in_csv}\nB,0,other\n", encoding="utf-8")
    with place.create(Configuration(actions=("A", "B"), user_type=UserType.TEXT)) as vault:
        vault.ingest(path, **columns)
        with pytest.raises(InvalidInputError, match=f"{type(value).__name__}.*give the text that the log"):
            vault.forget(**asked)
        with pytest.raises(InvalidInputError, match="give the text that the log"):
            vault.preview(**asked)
        assert vault.forget(**as_written).held == 1
        frame = {"action": ["A"], "reward": [1], kind: pd.Series([value], dtype=object)}
        vault.ingest(pd.DataFrame(frame), **columns)
        assert vault.forget(**asked).held == 1
        assert vault.forget(**asked).repeated


@pytest.mark.parametrize("kind", ["users", "records"])
def test_a_name_that_no_log_can_have_is_refused(place: Place, kind: str) -> None:
    too_long: dict[str, Any] = {kind: ["x" * (LONGEST_TEXT + 1)]}
    longest: dict[str, Any] = {kind: ["1" * (LONGEST_TEXT - 1) + "x"]}
    with holding(place, "bob") as vault:
        with pytest.raises(
            InvalidInputError, match="must have at most 65,536 bytes, as in a log; got one of"
        ):
            vault.forget(**too_long)
        assert vault.forget(**longest).held == 0


def test_a_similar_name_is_found_by_its_tally_too(place: Place) -> None:
    """The index of the records may be damaged; here the row is taken away, and the tally is left."""
    with holding(place, "Ann", "bob") as vault:
        change(vault, "DELETE FROM record WHERE owner = ?", vault._connection.all_keys.owner_digest("Ann"))
        with pytest.raises(SimilarNameError, match="rows of 'Ann', which may be user 'ann'"):
            vault.forget(users=["ann"])


MANY = [f"stranger {number}" for number in range(30)]


def test_many_names_are_compared_before_the_lock_is_taken(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with holding(place, "Ann", "bob") as vault:
        with pytest.raises(SimilarNameError, match="rows of 'Ann'"):
            vault.forget(users=[*MANY, "ann"])

        def under_the_lock(*_: Any) -> None:
            raise AssertionError("compared under the lock")

        monkeypatch.setattr(forget_operation, "refuse_similar_names", under_the_lock)
        assert vault.forget(users=[*MANY, "bob"]).held == 1
        assert vault.forget(users=[*MANY, "bob"]).repeated
        assert vault.verify().holds


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_similar_name_that_comes_in_before_the_lock_is_taken_is_seen(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compare = records_compared_before
    with holding(place, "bob") as vault, place.open() as other:

        def overtaken(*arguments: Any) -> object:
            found = compare(*arguments)
            other.ingest({"action": ["A"], "reward": [1], "user": ["Ann"], "id": ["x"]}, user="user", id="id")
            return found

        monkeypatch.setattr(forget_operation, "records_compared_before", overtaken)
        with pytest.raises(SimilarNameError, match="rows of 'Ann'"):
            vault.forget(users=[*MANY, "ann"])
        done = vault.forget(users=[*MANY, "Ann"])
        assert isinstance(done, Forgotten)
        assert done.held == 1
