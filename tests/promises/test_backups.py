"""Promise 4: an old copy put back is noticed, and `restore` forgets again whoever was forgotten since."""

import pytest

from tests.promises.driver import Driven, Refused, check_certificate, statistics_of
from tests.promises.test_histories import PEOPLE, rows_of


def test_an_old_copy_that_was_put_back_is_noticed_by_every_command(vault: Driven) -> None:
    vault.add(rows_of(1))
    copy = vault.copy_of_database()
    vault.forget(PEOPLE[0])
    vault.put_back(copy)
    for asked in (vault.decisions, vault.statistics, vault.ledger, lambda: vault.forget(PEOPLE[1])):
        with pytest.raises(Refused) as refused:
            asked()
        assert refused.value.code == 2
    assert vault.problems() != []


def test_restore_forgets_again_whoever_was_forgotten_since(vault: Driven) -> None:
    rows = rows_of(1)
    vault.add(rows)
    vault.forget(PEOPLE[0])
    copy = vault.copy_of_database()
    vault.forget(PEOPLE[1], PEOPLE[2])
    vault.forget_events(*(row.event for row in rows if row.person == PEOPLE[3]))
    handed_out = vault.certificate(PEOPLE[1])
    vault.put_back(copy)
    vault.restore()
    assert vault.statistics() == statistics_of(row for row in rows if row.person not in PEOPLE[:4])
    assert vault.add(rows)["added"] == 0
    assert vault.problems() == []
    assert check_certificate(handed_out, vault.public_keys()) == []
    assert vault.forget(PEOPLE[1], PEOPLE[2]).again


def test_restore_brings_back_readmissions_policy_and_arms(vault: Driven) -> None:
    rows = rows_of(1)
    vault.add(rows)
    vault.forget(PEOPLE[0])
    copy = vault.copy_of_database()
    vault.readmit(PEOPLE[0])
    vault.change_policy("--max-epsilon", 1, "--max-delta", 1e-5)
    vault.retire_arm("A")
    vault.rotate_signing_key()
    kinds = vault.kinds()
    vault.put_back(copy)
    vault.restore()
    assert vault.kinds()[: len(kinds)] == kinds
    assert vault.served() == "B"
    assert vault.add(rows)["left out"] == 0
    assert vault.problems() == []


def test_restore_needs_nothing_that_a_person_must_have_thought_of(vault: Driven) -> None:
    rows = rows_of(1)
    vault.add(rows)
    copy = vault.copy_of_database()
    vault.forget(PEOPLE[0])
    vault.put_back(copy)
    vault.restore()
    assert vault.statistics() == statistics_of(row for row in rows if row.person != PEOPLE[0])


def test_a_copy_from_before_an_ingest_is_noticed(vault: Driven) -> None:
    vault.add(rows_of(1))
    copy = vault.copy_of_database()
    vault.add(rows_of(2))
    vault.put_back(copy)
    with pytest.raises(Refused):
        vault.decisions()


def test_every_commit_adds_a_line_to_the_journal(vault: Driven) -> None:
    before = len(vault.journal())
    vault.add(rows_of(1))
    vault.forget(PEOPLE[0])
    assert len(vault.journal()) == before + 2
