"""Promise 2: a request lies wholly in one transaction, or not at all, also when killed."""

from collections.abc import Callable

import pytest

from tests.promises.driver import Driven, Refused, Row, check_certificate, statistics_of
from tests.promises.killing import Killer
from tests.promises.test_histories import PEOPLE, rows_of

SHARES = (0.02, 0.5, 0.8, 0.93, 1.0)
"""Where in its steps a command is killed; 1 is the last one."""


def killed(killer: Killer, vault: Driven, words: Callable[[int], tuple[object, ...]]) -> list[int]:
    """Kill a command at some of its steps, each time with another number; how often it was tried."""
    where = ("--url", vault.place.url, "--keys", vault.place.keys)
    steps = killer.run([str(word) for word in (*words(0), *where)])
    points = sorted({max(1, round(share * steps)) for share in SHARES})
    for number, point in enumerate(points, 1):
        killer.run([str(word) for word in (*words(number), *where)], die_at=point)
    return list(range(len(points) + 1))


def test_a_forget_that_is_killed_is_done_once_when_it_is_sent_again(vault: Driven, killer: Killer) -> None:
    rows = rows_of(1, 120)
    vault.add(rows)
    tried = killed(killer, vault, lambda number: vault.forget_words("--user", PEOPLE[number]))
    assert vault.problems() == []
    for number in tried:
        vault.forget(PEOPLE[number])  # whoever was not forgotten by then is now
    gone = {PEOPLE[number] for number in tried}
    assert vault.statistics() == statistics_of(row for row in rows if row.person not in gone)
    assert vault.requests() == len(tried)  # none is lost, none is doubled
    keys = vault.public_keys()
    for person in gone:
        assert check_certificate(vault.certificate(person), keys) == []
    assert vault.problems() == []


def test_right_after_each_kill_a_request_is_there_as_a_whole_or_not_at_all(
    vault: Driven, killer: Killer
) -> None:
    rows = rows_of(2, 120)
    vault.add(rows)
    where = ("--url", vault.place.url, "--keys", str(vault.place.keys))
    steps = killer.run([*vault.forget_words("--user", PEOPLE[0]), *where])
    gone, seen = {PEOPLE[0]}, set()
    for number, share in enumerate((0.05, 0.6, 1.0), 1):
        killer.run([*vault.forget_words("--user", PEOPLE[number]), *where], die_at=max(1, int(share * steps)))
        done = vault.requests() == len(gone) + 1
        if done:
            gone.add(PEOPLE[number])
            assert vault.certificate(PEOPLE[number]).exists()
        seen.add(done)
        assert vault.statistics() == statistics_of(row for row in rows if row.person not in gone)
        assert vault.problems() == []
    assert seen == {True, False}  # the kills were on both sides of the commit


def test_an_ingest_that_is_killed_leaves_all_rows_or_none(vault: Driven, killer: Killer) -> None:
    parts = [rows_of(seed, 12) for seed in range(len(SHARES) + 2)]
    logs = [vault.log(rows) for rows in parts]
    vault.ingest(logs[-1])  # the first one has other steps

    def words(number: int) -> tuple[object, ...]:
        return vault.ingest_words(logs[number])

    tried = killed(killer, vault, words)
    assert vault.records() % 12 == 0
    assert vault.problems() == []
    for number in tried:
        vault.ingest(logs[number])
    assert vault.statistics() == statistics_of(row for number in [*tried, -1] for row in parts[number])
    assert vault.problems() == []


def test_the_other_changes_of_a_vault_are_whole_when_they_are_killed(vault: Driven, killer: Killer) -> None:
    rows = rows_of(1, 60)
    vault.add(rows)
    vault.forget(*PEOPLE[:2])
    kept = statistics_of(row for row in rows if row.person not in PEOPLE[:2])
    where = ("--url", vault.place.url, "--keys", str(vault.place.keys))
    changes = (vault.ADD_ARM_C, vault.RETIRE_ARM_B, vault.ROTATE_SIGNING_KEY, vault.COMPACT)
    for words in changes:
        killer.run([*words, *where], die_at=12)
        assert vault.problems() == []
        killer.run([*words, *where])
        statistics = vault.statistics()
        assert {arm: statistics[arm] for arm in "AB"} == kept
    assert vault.problems() == []
    assert check_certificate(vault.certificate(PEOPLE[0]), vault.public_keys()) == []


def test_the_same_request_again_gets_the_same_answer_and_changes_nothing(vault: Driven) -> None:
    vault.add(rows_of(1))
    first = vault.forget(PEOPLE[0], PEOPLE[1])
    head = vault.head()
    again = vault.forget(PEOPLE[1], PEOPLE[0])
    assert (again.entry, again.again) == (first.entry, True)
    assert vault.head() == head


def test_a_request_of_many_is_one_entry_and_a_certificate_for_each(vault: Driven) -> None:
    vault.add(rows_of(1))
    before = len(vault.ledger())
    vault.forget(*PEOPLE[:4], "nobody")
    assert len(vault.ledger()) == before + 1
    keys = vault.public_keys()
    texts = [vault.certificate(person).read_text() for person in (*PEOPLE[:4], "nobody")]
    for person, text in zip((*PEOPLE[:4], "nobody"), texts, strict=True):
        assert person in text
        assert not any(other in text for other in PEOPLE[:4] if other != person)
        assert check_certificate(vault.certificate(person), keys) == []


def test_a_request_that_is_refused_leaves_nothing(vault: Driven) -> None:
    vault.add([Row("1", "ann", "A", 4), Row("2", "bob", "B", 2)])
    head, statistics = vault.head(), vault.statistics()
    with pytest.raises(Refused):
        vault.forget("ann", "BOB")  # bob is held, so that BOB may be him
    assert (vault.head(), vault.statistics()) == (head, statistics)
    assert vault.forget("ann").again is False
