"""Every kind of source gives the log of a plain loop over its rows, or refuses it in one sentence."""

import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import armnesia as am
from armnesia.core.errors import ArmnesiaError, UndeclaredActionsWarning
from armnesia.core.identifiers import UserType
from tests.logs import test_databases, test_names
from tests.logs.conformance import test_guards
from tests.logs.conformance.cases import Case
from tests.logs.conformance.expected import Totals, expected, text_of
from tests.logs.conformance.sources import Place, Stored
from tests.logs.conformance.table import ALL, GUARDS, TABLE, cells


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("sources"))
    yield made
    made.close()


@pytest.mark.parametrize(("case", "kind"), cells())
def test_a_cell(case: Case, kind: str, place: Place) -> None:
    outcome, stored = case.outcome_in(kind), case.stored(kind, place)
    check, compare = (bring_in, bring_in) if case.vault is not None else (read_all, compare_log)
    if outcome.status == "right":
        compare(case, kind, stored)
        return
    with pytest.raises(ArmnesiaError) as caught:
        check(case, kind, stored)
    message = str(caught.value)
    assert any(word in message for word in outcome.words)
    assert "\n" not in message.strip()
    assert not re.search(r"\b(Binder|Conversion|Parser|Catalog|IO|Input) Error", message), (
        "the engine's words"
    )


def read(case: Case, kind: str, stored: Stored) -> am.Log:
    options: dict[str, Any] = {
        "table": stored.table,
        "actions": case.actions,
        "reward_range": case.reward_range,
        "where": [each.text for each in case.where] or None,
    }
    action, reward, user = case.roles
    if kind == "arrays":
        others = {
            name: values for name, values in stored.held.items() if name not in case.roles and name != "user"
        }
        users = None if user is None else stored.held[user]
        return am.read_log(
            action=stored.held[action], reward=stored.held[reward], user=users, columns=others, **options
        )
    named: dict[str, Any] = {} if case.by_default else {"user": user}
    return am.read_log(stored.source, action=action, reward=reward, **named, **options)


def read_all(case: Case, kind: str, stored: Stored) -> None:
    log = read(case, kind, stored)
    log.statistics()
    if log.has_users:
        log.users()
    if case.by:
        log.by(*(key.text for key in case.by))


def bring_in(case: Case, kind: str, stored: Stored) -> None:
    """Into a vault: every row once, whatever its id looks like; a person in every spelling of a number."""
    from armnesia.vault import Configuration, Vault

    options = dict(case.vault or {})
    user_type = UserType(options.pop("user_type")) if "user_type" in options else None
    person, held = options.pop("forget", None), options.pop("held", 0)
    action, reward, user = case.roles
    keys = tuple(key.text for key in case.by)
    configuration = Configuration(actions=tuple(case.actions or ()), user_type=user_type, by=keys)
    with (
        tempfile.TemporaryDirectory() as folder,
        Vault.create(f"sqlite:///{folder}/vault.db", configuration) as vault,
    ):
        options |= {"table": stored.table, "action": action, "reward": reward, "user": user}
        assert vault.ingest(stored.source, **options).added == case.added
        assert vault.ingest(stored.source, **options).added == 0
        if person is not None:
            assert vault.forget(users=[person]).records == held


def totals_of(statistics: Any) -> Totals:
    rows = zip(statistics.actions, statistics.counts, statistics.sums, statistics.squares, strict=True)
    return {text_of(arm): (int(count), int(total), int(squares)) for arm, count, total, squares in rows}


def compare_log(case: Case, kind: str, stored: Stored) -> None:
    """The statistics of a log, the requests of its people, and its decisions."""
    if case.actions is None:
        with pytest.warns(UndeclaredActionsWarning):
            log = read(case, kind, stored)
    else:
        log = read(case, kind, stored)
    actions = case.actions or sorted({text_of(each) for each in stored.held[case.roles[0]]})
    must = expected(stored.held, actions, case.roles, case.reward_range, case.where, case.by)
    assert [text_of(each) for each in log.actions] == [text_of(each) for each in actions]
    assert log.reward_range == case.reward_range
    assert totals_of(log.statistics()) == must.totals
    assert len(log) == sum(count for count, *_ in must.totals.values())
    assert log.has_users == (case.roles[2] is not None)
    if log.has_users:
        assert_people(log, must.users, must.of_user)
    if kind not in ("Spark", "PostgreSQL table") and not (case.writers or case.by or case.where):
        last = len(log)  # rows are numbered from 1
        assert totals_of(log.request(rows=[last]).records) == must.rows[last - 1]
        assert totals_of(log.request(rows=range(1, last + 1)).records) == must.totals
    if case.by:
        decisions = log.by(*(key.text for key in case.by))
        assert dict(zip(decisions.keys, per_decision(decisions.statistics), strict=True)) == must.of_key
        for user in list(log.users())[:1] if log.has_users else []:
            of_user = zip(decisions.keys, per_decision(decisions.request(user=user).records), strict=True)
            named = {key: part for key, part in of_user if any(count for count, *_ in part.values())}
            assert named == must.of_key_and_user[text_of(user)]


def assert_people(log: am.Log, users: Counter[str], of_user: dict[str, Totals]) -> None:
    people = log.users()
    assert {text_of(user): count for user, count in people.items()} == users
    for user in people:
        assert totals_of(log.request(user=user).records) == of_user[text_of(user)]
    if len(people) > 1:
        together = log.request(users=list(people))
        assert together.counts.sum() == sum(users.values())
    with pytest.raises(ArmnesiaError):
        log.request(user="nobody of this name")


def per_decision(statistics: Any) -> list[Totals]:
    return [
        {
            text_of(arm): (int(count), int(total), int(squares))
            for arm, count, total, squares in zip(statistics.actions, *parts, strict=True)
        }
        for parts in zip(statistics.counts, statistics.sums, statistics.squares, strict=True)
    ]


def test_the_table_has_a_cell_for_every_case_and_kind_of_source() -> None:
    assert all(cell.status in ("right", "refused", "n.a.") for row in TABLE.values() for cell in row.values())
    assert all(cell.words for row in TABLE.values() for cell in row.values() if cell.status == "refused")
    assert all(cell.reason for row in TABLE.values() for cell in row.values() if cell.status == "n.a.")


def test_every_guard_names_cases_and_tests_that_are_there() -> None:
    named = {name for names in GUARDS.values() for name in names}
    tests = {*vars(test_guards), *vars(test_names), *vars(test_databases)}
    assert named - TABLE.keys() - tests == set()


def test_what_was_once_right_is_refused_now() -> None:
    for case in ALL:
        outcomes = {cell.status for cell in TABLE[case.name].values()}
        assert not case.once_right or "refused" in outcomes
