"""Every kind of source gives the log of a plain loop over its rows, or refuses it in one sentence."""

import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

import armnesia as am
from armnesia.core.errors import ArmnesiaError, UndeclaredActionsWarning
from armnesia.core.identifiers import UserType
from tests.logs.conformance.cases import Case
from tests.logs.conformance.expected import Totals, expected, text_of
from tests.logs.conformance.sources import Place, Stored
from tests.logs.conformance.table import ALL, TABLE, cells, is_covered


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


def by_arm(actions: Sequence[Any], *numbers: Any) -> Totals:
    return {text_of(arm): tuple(map(int, each)) for arm, *each in zip(actions, *numbers, strict=True)}


def totals_of(found: Any) -> Totals:
    return by_arm(found.actions, found.counts, found.sums, found.squares)


def totals_of_decisions(keys: Sequence[Any], found: Any) -> dict[Any, Totals]:
    parts = zip(keys, found.counts, found.sums, found.squares, strict=True)
    return {key: by_arm(found.actions, *numbers) for key, *numbers in parts}


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
        assert_people(log, must.users, must.of_user, briefly=bool(case.where or case.by))
    if kind not in ("Spark", "PostgreSQL table", "SQLite table") and not (
        case.writers or case.by or case.where
    ):
        last = len(log)  # rows are numbered from 1
        assert totals_of(log.request(rows=[last]).records) == must.rows[last - 1]
        assert totals_of(log.request(rows=range(1, last + 1)).records) == must.totals
    if case.by:
        decisions = log.by(*(key.text for key in case.by))
        assert totals_of_decisions(decisions.keys, decisions.statistics) == must.of_key
        for user in list(log.users())[:1] if log.has_users else []:
            of_user = totals_of_decisions(decisions.keys, decisions.request(user=user).records)
            named = {key: part for key, part in of_user.items() if any(count for count, *_ in part.values())}
            assert named == must.of_key_and_user[text_of(user)]


def assert_people(log: am.Log, users: Counter[str], of_user: dict[str, Totals], *, briefly: bool) -> None:
    """One person, and every other person together: whoever is taken for another is in the other half."""
    found = log.users()
    assert {text_of(user): count for user, count in found.items()} == users
    people = list(found)
    for asked in [people[::2]] if briefly else filter(None, (people[:1], people[::2], people[1::2])):
        records = log.request(users=asked).records
        assert totals_of(records) == added_up([of_user[text_of(user)] for user in asked])
    if not briefly:
        with pytest.raises(ArmnesiaError):
            log.request(user="nobody of this name")


def added_up(parts: Sequence[Totals]) -> Totals:
    return {arm: tuple(map(sum, zip(*(part[arm] for part in parts), strict=True))) for arm in parts[0]}


def test_the_table_has_a_cell_for_every_case_and_kind_of_source() -> None:
    assert all(cell.status in ("right", "refused", "n.a.") for row in TABLE.values() for cell in row.values())
    assert all(cell.words for row in TABLE.values() for cell in row.values() if cell.status == "refused")


def test_every_case_has_a_quick_cell() -> None:
    """What another kind shows is slow; what was seen to go wrong in an engine stays in the quick tests."""
    for case in ALL:
        there = [kind for kind, cell in TABLE[case.name].items() if cell.status != "n.a." and kind != "Spark"]
        assert not all(is_covered(case, kind) for kind in there), case.name
