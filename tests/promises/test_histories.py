"""Promise 1: after any history, the statistics and the arm are those of retraining, bit for bit."""

import random
from pathlib import Path

import pytest

from tests.promises.driver import Driven, Row, decide_log, driven, statistics_of, write_csv

PEOPLE = [f"person-{number}" for number in range(12)]


def rows_of(seed: int, number: int = 60, people: list[str] = PEOPLE) -> list[Row]:
    """Rows of everybody, drawn with a seed."""
    draw = random.Random(seed)
    return [
        Row(
            f"e{seed}-{n}",
            draw.choice(people),
            draw.choice("AB"),
            draw.randint(0, 4),
            draw.choice(("DE", "FR")),
        )
        for n in range(number)
    ]


def retrained(folder: Path, rows: list[Row]) -> str:
    """The arm that a log of these rows alone gives, without a vault."""
    path = write_csv(folder / "retrained.csv", rows)
    return str(decide_log(path, "--actions", "A,B", "--confidence", "0.001")["action"])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(3))
def test_after_any_history_the_vault_is_the_one_that_never_had_the_rows(vault: Driven, seed: int) -> None:
    draw = random.Random(seed)
    held: list[Row] = []
    forgotten: set[str] = set()
    for step in range(8):
        if step % 2 == 0:
            fresh = rows_of(100 * seed + step, 30)
            vault.add(fresh)
            held += [row for row in fresh if row.person not in forgotten]
        else:
            people = draw.sample(PEOPLE, draw.randint(1, 2))
            vault.forget(*people)
            forgotten |= set(people)
            held = [row for row in held if row.person not in forgotten]
        assert vault.statistics() == statistics_of(held)
    assert vault.served() == retrained(vault.folder, held)
    assert vault.problems() == []


def test_the_same_log_twice_adds_nothing(vault: Driven) -> None:
    rows = rows_of(1)
    assert vault.add(rows)["added"] == 60
    assert vault.add(rows[::-1] + rows_of(2, 3))["added"] == 3
    assert vault.statistics() == statistics_of(rows + rows_of(2, 3))


def test_rows_without_an_id_are_known_by_their_content(vault: Driven) -> None:
    log = vault.log(rows_of(1))
    assert [vault.ingest(log, ids=False)["added"] for _ in range(2)] == [60, 0]


def test_a_row_that_was_corrected_counts_as_it_is_now(vault: Driven) -> None:
    rows = rows_of(1)
    vault.add(rows)
    corrected = [row._replace(quarters=4 - row.quarters) for row in rows[:5]]
    changed = sum(new != old for new, old in zip(corrected, rows, strict=False))
    assert vault.correct(corrected)["replaced"] == changed
    assert vault.statistics() == statistics_of(corrected + rows[5:])
    vault.forget(corrected[0].person)
    assert vault.statistics() == statistics_of(
        row for row in corrected + rows[5:] if row.person != corrected[0].person
    )


def test_a_single_record_is_forgotten_and_stays_out(vault: Driven) -> None:
    rows = rows_of(1)
    vault.add(rows)
    assert vault.forget_events(rows[7].event, rows[9].event).records == 2
    kept = [row for row in rows if row not in (rows[7], rows[9])]
    assert vault.statistics() == statistics_of(kept)
    assert vault.add(rows) == {"added": 0, "left out": 2, "replaced": 0}


def test_a_person_is_forgotten_in_all_decisions_by_one_request(database: str, tmp_path: Path) -> None:
    vault = driven(database, tmp_path, options=("--by", "country"))
    rows = rows_of(1)
    vault.add(rows)
    before = vault.requests()
    vault.forget(PEOPLE[0], PEOPLE[1])
    kept = [row for row in rows if row.person not in PEOPLE[:2]]
    for country in ("DE", "FR"):
        own = [row for row in kept if row.country == country]
        assert vault.statistics(country=country) == statistics_of(own)
        assert vault.served(country=country) == retrained(tmp_path, own)
    assert set(vault.decisions()) == {"DE", "FR"}
    assert vault.requests() == before + 1
    assert vault.problems() == []


def test_arms_come_and_go_and_their_records_can_be_forgotten(vault: Driven) -> None:
    rows = rows_of(1)
    vault.add(rows)
    vault.add_arm("C")
    more = [Row(f"c{n}", PEOPLE[n % 12], "C", 4) for n in range(400)]
    vault.add(more)
    assert vault.served() == "C"
    vault.retire_arm("C")
    assert vault.served() == retrained(vault.folder, rows)
    vault.forget(PEOPLE[0])
    kept = [row for row in rows + more if row.person != PEOPLE[0]]
    assert vault.statistics() == statistics_of(kept, "ABC")
    assert vault.problems() == []


def test_a_preview_changes_nothing_and_says_what_will_be(vault: Driven) -> None:
    vault.add(rows_of(1))
    before = vault.statistics(), vault.head(), vault.served()
    seen = [vault.preview(PEOPLE[0]) for _ in range(2)]
    assert seen[0] == seen[1]
    assert (vault.statistics(), vault.head(), vault.served()) == before
    done = vault.forget(PEOPLE[0])
    assert (seen[0]["records"], seen[0]["probabilities"][done.served or ""]) == (done.records, 1.0)


def test_a_preview_of_an_ingest_adds_nothing(vault: Driven) -> None:
    assert vault.add(rows_of(1), "--dry-run")["added"] == 60
    assert vault.records() == 0


def test_only_what_the_policy_allows_is_answered(vault: Driven) -> None:
    vault.add(rows_of(1, 400))
    tilt = ("--unlearner", "tilt", "--epsilon", "1", "--delta", "1e-5")
    with pytest.raises(Exception, match="policy"):
        vault.forget(PEOPLE[0], options=tilt)
    vault.change_policy("--max-epsilon", 1, "--max-delta", 1e-5, "--levels", "retained,request_shape")
    assert vault.forget(PEOPLE[0], options=tilt).records > 0
    assert "policy" in vault.kinds()
    assert vault.statistics() == statistics_of(row for row in rows_of(1, 400) if row.person != PEOPLE[0])
