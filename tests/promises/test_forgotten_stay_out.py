"""Promise 3: a forgotten person stays out of every later ingest, until a readmission."""

from pathlib import Path

import pytest

from tests.promises.driver import Driven, Refused, Row, driven, statistics_of
from tests.promises.test_histories import PEOPLE, rows_of


def test_rows_of_a_forgotten_person_are_left_out_and_counted(vault: Driven) -> None:
    rows = rows_of(1)
    vault.add(rows)
    gone = vault.forget(PEOPLE[0]).records
    assert vault.add(rows) == {"added": 0, "left out": gone, "replaced": 0}
    fresh = [Row("new-1", PEOPLE[0], "A", 4), Row("new-2", PEOPLE[1], "A", 4)]
    assert vault.add(fresh) == {"added": 1, "left out": 1, "replaced": 0}
    assert vault.statistics() == statistics_of(r for r in rows + fresh if r.person != PEOPLE[0])


def test_who_was_never_held_stays_out_too(vault: Driven) -> None:
    vault.add([Row("1", "ann", "A", 4)])
    done = vault.forget("zoe")
    assert (done.records, done.held) == (0, 0)
    assert vault.add([Row("2", "zoe", "A", 4)])["left out"] == 1


@pytest.mark.parametrize("spelling", ["7", "007", "7.0", " 7 ", "+7"])
def test_integers_in_any_spelling_are_one_person(tmp_path: Path, spelling: str) -> None:
    vault = driven("sqlite", tmp_path, user_type="integer")
    vault.add([Row("1", "7", "A", 4), Row("2", "8", "B", 4)])
    assert vault.forget(spelling).records == 1
    assert vault.add([Row("3", "07.0", "A", 4)])["left out"] == 1


def test_text_is_one_person_in_any_unicode_form_and_with_blanks_around(vault: Driven) -> None:
    vault.add([Row("1", "zoe\u0301", "A", 4)])
    assert vault.forget("  zo\u00e9 ").records == 1
    assert vault.add([Row("2", "zo\u00e9", "A", 4)])["left out"] == 1


def test_a_new_key_and_a_compaction_keep_them_out(vault: Driven) -> None:
    rows = rows_of(1)
    vault.add(rows)
    gone = vault.forget(PEOPLE[0]).records
    vault.rotate_signing_key()
    vault.compact()
    assert vault.add(rows)["left out"] == gone
    assert vault.problems() == []


def test_a_readmitted_person_comes_in_again_and_the_ledger_says_so(vault: Driven) -> None:
    rows = rows_of(1)
    vault.add(rows)
    gone = vault.forget(PEOPLE[0]).records
    vault.readmit(PEOPLE[0])
    assert "readmit" in vault.kinds()
    assert vault.add(rows)["added"] == gone
    assert vault.statistics() == statistics_of(rows)
    with pytest.raises(Refused, match="suppression list"):
        vault.readmit(PEOPLE[0])
    assert vault.forget(PEOPLE[0]).records == gone
