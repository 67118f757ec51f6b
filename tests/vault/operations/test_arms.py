"""Arms that come and go: what is served and released, what the ledger says, and who stays out."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armnesia as am
from armnesia.core.errors import ArmnesiaError, InvalidInputError, VaultError
from armnesia.unlearners.joint import budget_of_each
from armnesia.vault import ArmRule, Configuration, Vault
from tests.databases import Place
from tests.vault.raw_vaults import Snapshot, arms_in, values

COLUMNS: dict[str, Any] = {"user": "user", "id": "id"}
TILT: dict[str, Any] = {"unlearner": "tilt", "epsilon": 1.0, "delta": 1e-5}
FROZEN: dict[str, Any] = {"unlearner": "frozen_rollback", "penalty": "frozen"}
ANSWERS = pytest.mark.parametrize("options", [{}, TILT, FROZEN], ids=["retained", "tilt", "frozen"])
KEYS = pytest.mark.parametrize("by", [(), ("page", "country")], ids=["one decision", "many decisions"])


def visits(rows: int, *, actions: str = "ABC", seed: int = 1, prefix: str = "r") -> dict[str, list[Any]]:
    """Arm B is the best."""
    draw = random.Random(seed)
    arms = [draw.choice(actions) for _ in range(rows)]
    return {
        "action": arms,
        "reward": [int(draw.random() < {"A": 0.5, "B": 0.9, "C": 0.3, "D": 0.95}[arm]) for arm in arms],
        "user": [f"u{draw.randrange(30)}" for _ in range(rows)],
        "id": [f"{prefix}{row}" for row in range(rows)],
        "page": [draw.choice(["checkout", "search"]) for _ in range(rows)],
        "country": [draw.choice(["DE", "FR"]) for _ in range(rows)],
    }


LOG = visits(600)
MORE = visits(300, actions="ABCD", seed=2, prefix="n")


def merged(*logs: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {name: [value for log in logs for value in log[name]] for name in logs[0]}


def only(log: dict[str, list[Any]], **wanted: Any) -> dict[str, list[Any]]:
    """The rows whose columns have these values, or one of these; actions are letters of a text."""
    allowed = {
        name: [value] if isinstance(value, str) and name != "action" else value
        for name, value in wanted.items()
    }
    rows = [
        row for row in range(len(log["id"])) if all(log[name][row] in some for name, some in allowed.items())
    ]
    return {name: [column[row] for row in rows] for name, column in log.items()}


def created(place: Place, **options: Any) -> Vault:
    return place.create(Configuration(**{"actions": ("A", "B", "C"), **options}))


def filled(place: Place, **options: Any) -> Vault:
    vault = created(place, **options)
    assert vault.ingest(LOG, **COLUMNS).added == 600
    return vault


def statistics(log: dict[str, list[Any]], arms: str) -> am.ArmStatistics:
    """Counted by hand: of these arms alone."""
    rows = list(zip(log["action"], log["reward"], strict=True))
    counts = [sum(arm == each for each, _ in rows) for arm in arms]
    ones = [sum(reward for each, reward in rows if arm == each) for arm in arms]
    return am.ArmStatistics(tuple(arms), np.array(counts), np.array(ones) * 10**9)


def decision_of(log: dict[str, list[Any]], arms: str) -> Any:
    return am.LCB(confidence=0.001).decide(statistics(log, arms)).action


def held(vault: Vault) -> dict[tuple[str, ...], list[tuple[int, int, int]]]:
    rows = values(vault, "SELECT key, statistics FROM decision")
    return {tuple(json.loads(key)): arms_in(text) for key, text in rows}


def served(vault: Vault) -> dict[tuple[str, ...], Any]:
    found = vault.decisions()
    return {tuple(key.values()): arm for key, arm in zip(found.keys, found.actions, strict=True)}


def part_of(log: dict[str, list[Any]], key: tuple[str, ...]) -> dict[str, list[Any]]:
    return only(log, page=key[0], country=key[1]) if key else log


@KEYS
def test_an_added_arm_starts_empty_and_is_learnt(place: Place, by: tuple[str, ...]) -> None:
    with filled(place, by=by) as vault:
        with pytest.raises(ArmnesiaError, match="'D'"):
            vault.ingest(MORE, **COLUMNS)
        done = vault.add_arm("D")
        assert (done.offered, done.decisions) == (True, 4 if by else None)
        assert all(own[3] == (0, 0, 0) for own in held(vault).values())
        for key, arm in served(vault).items():
            assert arm == decision_of(part_of(LOG, key), "ABCD")
        assert vault.verify().problems == ()
        assert vault.ingest(MORE, **COLUMNS).added == 300
        for key, arm in served(vault).items():
            assert arm == decision_of(part_of(merged(LOG, MORE), key), "ABCD")
        assert vault.arms().offered == ("A", "B", "C", "D")
        entry = vault.ledger().entries[-1]
        assert (entry.kind, entry.facts["arm"], entry.facts["where"]) == ("arms", "D", {})
        assert vault.verify().problems == ()


@KEYS
def test_a_retired_arm_is_never_served_and_its_rows_stay(place: Place, by: tuple[str, ...]) -> None:
    with filled(place, by=by) as vault:
        before = held(vault)
        assert set(served(vault).values()) == {"B"}
        vault.retire_arm("B")
        assert held(vault) == before
        for key, arm in served(vault).items():
            assert arm == decision_of(part_of(LOG, key), "AC")
        more = only(MORE, action="ABC")
        assert vault.ingest(more, **COLUMNS).added == len(more["id"])  # counted, by default
        for key, arm in served(vault).items():
            assert arm == decision_of(part_of(merged(LOG, more), key), "AC")
        assert vault.forget(users=["u7"]).counts["B"] == sum(
            (arm, user) == ("B", "u7")
            for log in (LOG, more)
            for arm, user in zip(log["action"], log["user"], strict=True)
        )
        assert vault.verify().problems == ()
        vault.add_arm("B")  # with the records that it has
        assert set(served(vault).values()) == {"B"}
        assert vault.arms().offered == ("A", "B", "C")


@KEYS
def test_new_rows_of_a_retired_arm_are_refused_if_told(place: Place, by: tuple[str, ...]) -> None:
    with filled(place, by=by) as vault:
        vault.forget(users=["u7"])
        vault.retire_arm("B", new_rows="refuse")
        before = held(vault)
        again = vault.ingest(LOG, **COLUMNS)  # rows that are there already, or forgotten
        assert (again.added, again.suppressed) == (0, LOG["user"].count("u7"))
        more = only(MORE, action="ABC")
        for dry_run in (True, False):
            with pytest.raises(VaultError, match=r"arm 'B' is not offered.*the first is row \d+.*ingested"):
                vault.ingest(more, **COLUMNS, dry_run=dry_run)
        assert held(vault) == before
        rest = only(MORE, action="AC")
        assert vault.ingest(rest, **COLUMNS).added == len(rest["id"]) - rest["user"].count("u7")
        assert vault.retire_arm("B", new_rows="count").new_rows == "count"
        assert vault.ingest(more, **COLUMNS).added > 0
        assert vault.verify().problems == ()


def test_arms_differ_between_decisions_present_and_future(place: Place) -> None:
    with filled(place, by=("page", "country")) as vault:
        assert vault.add_arm("D", {"page": "search"}).decisions == 2
        assert vault.retire_arm("B", {"page": "search", "country": "DE"}).decisions == 1
        with pytest.warns(UserWarning, match="no decision has page=new yet"):
            assert vault.retire_arm("A", {"page": "new"}).decisions == 0
        assert [(arm.action, arm.decisions) for arm in vault.arms().arms] == [
            ("A", 4),
            ("B", 3),
            ("C", 4),
            ("D", 2),
        ]
        assert vault.arms({"page": "search", "country": "DE"}).offered == ("A", "C", "D")
        with pytest.raises(VaultError, match=r"arm 'D' is not offered in the decision \{'page': 'checkout'"):
            vault.ingest(MORE, **COLUMNS)
        fits = merged(only(MORE, page="search"), only(MORE, page="checkout", action="ABC"))
        vault.ingest(fits, **COLUMNS)
        new = {"action": ["A", "C"], "reward": [1, 1], "user": ["x", "y"], "id": ["p", "q"]}
        vault.ingest({**new, "page": ["new"] * 2, "country": ["FR"] * 2}, **COLUMNS)
        everything = merged(LOG, fits)
        offers: dict[tuple[str, ...], str] = {("search", "DE"): "ACD", ("search", "FR"): "ABCD"}
        for key, arm in served(vault).items():
            if key != ("new", "FR"):
                assert arm == decision_of(part_of(everything, key), offers.get(key, "ABC"))
        assert served(vault)["new", "FR"] == "C"  # A is not offered there, whatever its rows say
        assert vault.verify().problems == ()
        assert Vault.restore(place.url, keys=place.keys).as_it_was


@pytest.mark.parametrize("unlearner", ["rollback", "tilt", "gaussian", "frozen_rollback"])
@pytest.mark.parametrize("rewards", ["binary", "halves"])
def test_a_release_is_that_of_a_log_with_the_offered_arms_alone(
    place: Place, unlearner: str, rewards: str
) -> None:
    budget = am.Budget(epsilon=1.0, delta=0.01)
    spent = {} if "rollback" in unlearner else {"epsilon": 1.0, "delta": 0.01}
    with filled(place, by=("page", "country"), unlearner=unlearner, **spent) as vault:
        vault.retire_arm("B", {"page": "search"})
        vault.retire_arm("C", {"country": "FR"})
        log = LOG
        if rewards == "halves":  # of an arm that is not offered: no unlearner may see them
            odd: dict[str, list[Any]] = {"action": ["B"], "reward": [0.5], "user": ["u7"], "id": ["odd"]}
            log = merged(LOG, {**odd, "page": ["search"], "country": ["DE"]})
            assert vault.ingest(log, **COLUMNS).added == 1
        offers: dict[tuple[str, ...], str] = {
            ("search", "DE"): "AC",
            ("search", "FR"): "A",
            ("checkout", "FR"): "AB",
        }
        found = vault.preview(users=["u7"])
        assert found.decisions is not None
        lost, method = only(log, user="u7"), am.UNLEARNERS[unlearner]()
        touched = [
            key
            for key in (tuple(each.key.values()) for each in found.decisions)
            if only(part_of(lost, key), action=offers.get(key, "ABC"))["id"]
        ]
        each_budget = budget_of_each(method, budget, len(touched), "best")
        joint: Any = found.release
        remarks = []
        for each, row in zip(found.decisions, joint.probabilities.tolist(), strict=True):
            key = tuple(each.key.values())
            arms = offers.get(key, "ABC")
            own = am.DeletionRequest(statistics(part_of(lost, key), arms), binary=True)
            expected = method.release(
                am.LCB(confidence=0.001), statistics(part_of(log, key), arms), own, each_budget
            )
            if key in touched:
                log_of_key = am.LCB(confidence=0.001), statistics(part_of(log, key), arms)
                remarks.append(method.remark(*log_of_key, own, each_budget))
            got = dict(zip("ABC", row, strict=True))
            assert [got[arm] for arm in arms] == pytest.approx(expected.probabilities.tolist(), abs=1e-12)
            assert all(got[arm] == 0 for arm in set("ABC") - set(arms))
        if unlearner == "tilt":
            every = sum(insured == of for _, insured, _, of, _ in map(str.split, remarks))
            remark = f"Insured: all contenders in {every} of {len(touched)} decisions"
            assert (found.remark or "").removesuffix(f", some of them in {len(touched) - every}") == remark
            assert remark in "\n".join(found.method_lines)
        else:
            assert found.remark is None
        done = vault.forget(users=["u7"])
        assert all(
            each.served in offers.get(tuple(each.key.values()), "ABC") for each in done.decisions or ()
        )
        assert vault.verify().problems == ()


def test_rewards_of_a_retired_arm_do_not_choose_the_answer(place: Place) -> None:
    """`mixing` needs rewards of 0 and 1, of one arm: those of a retired arm are none of its business."""
    options: dict[str, Any] = {"unlearner": "mixing", "epsilon": 1.0, "delta": 0.1}
    with filled(place, **options) as vault:
        odd = {"action": ["B", "A"], "reward": [0.5, 1], "user": ["ann"] * 2, "id": ["o1", "o2"]}
        vault.ingest({**odd, "page": ["p"] * 2, "country": ["c"] * 2}, **COLUMNS)
        with pytest.raises(ArmnesiaError, match="one arm"):
            vault.preview(users=["ann"])
        vault.retire_arm("B")
        before = statistics(LOG, "AC").add("A", 1)
        one = am.DeletionRequest.from_rewards({"A": [1], "C": []})
        expected = am.Mixing().release(am.LCB(confidence=0.001), before, one, am.Budget(epsilon=1, delta=0.1))
        found = vault.preview(users=["ann"]).probabilities
        assert found == {"B": 0.0, **dict(zip("AC", expected.probabilities.tolist(), strict=True))}
        assert vault.forget(users=["ann"]).records == 2


@ANSWERS
@KEYS
def test_a_backup_gets_the_arms_that_came_and_went_since(
    place: Place, tmp_path: Path, by: tuple[str, ...], options: dict[str, Any]
) -> None:
    vault = filled(place, by=by, **options)
    backup = Snapshot(place, vault, tmp_path)
    vault.add_arm("D", {"page": "search"} if by else None)
    vault.retire_arm("B")
    vault.forget(users=["u7"])
    expected, configuration, arms = held(vault), vault.configuration, served(vault)
    vault.close()
    backup.put_back()
    assert Vault.restore(place.url, keys=place.keys).replayed == 3
    with place.open() as vault:
        assert (held(vault), vault.configuration) == (expected, configuration)
        assert set(served(vault).values()) <= {"A", "C", "D"}
        assert options == TILT or served(vault) == arms
        assert vault.verify().problems == ()
        assert vault.ingest(only(MORE, page="search", action="ACD"), **COLUMNS).added > 0
        assert vault.verify().problems == ()


@KEYS
def test_external_vaults_add_and_retire_arms(place: Place, tmp_path: Path, by: tuple[str, ...]) -> None:
    def written(name: str, log: dict[str, list[Any]]) -> str:
        lines = [",".join(map(str, row)) for row in zip(*log.values(), strict=True)]
        (tmp_path / name).write_text("\n".join([",".join(log), *lines]) + "\n", encoding="utf-8")
        return str(tmp_path / name)

    with created(place, mode="external", by=by) as vault:
        vault.ingest(written("log.csv", LOG), **COLUMNS)
        vault.add_arm("D")
        vault.ingest(written("more.csv", MORE), **COLUMNS)
        vault.retire_arm("B", new_rows="refuse")
        more = visits(50, actions="B", seed=3, prefix="m")
        with pytest.raises(VaultError, match="arm 'B' is not offered"):
            vault.ingest(written("refused.csv", more), **COLUMNS)
        for key, arm in served(vault).items():
            assert arm == decision_of(part_of(merged(LOG, MORE), key), "ACD")
        before, arms = held(vault), served(vault)
        assert Vault.restore(place.url, keys=place.keys).as_it_was
        assert (held(vault), served(vault)) == (before, arms)
        vault.forget(users=["u7"])
        assert vault.verify().problems == ()


@pytest.mark.filterwarnings("ignore:no decision has page=new yet")
def test_what_cannot_be_is_refused_and_changes_nothing(sqlite_place: Place, tmp_path: Path) -> None:
    with filled(sqlite_place, by=("page", "country")) as vault:
        head = vault.head
        cases: list[tuple[Callable[[], Any], str]] = [
            (lambda: vault.add_arm("A"), "arm 'A' is offered already"),
            (lambda: vault.add_arm("A", {"page": "search"}), "arm 'A' is offered where page=search already"),
            (lambda: vault.add_arm(""), "an arm must be named by text or a whole number; got ''"),
            (lambda: vault.add_arm("D", {"colour": "red"}), "have the keys 'page', 'country'; got 'colour'"),
            (lambda: vault.retire_arm("X"), "arm 'X' is not one of 'A', 'B', 'C'"),
            (lambda: vault.retire_arm("B", new_rows="hide"), "new_rows must be 'count' or 'refuse'"),  # type: ignore[arg-type]
        ]
        for refused, words in cases:
            with pytest.raises(InvalidInputError, match=words):
                refused()
        assert vault.head == head
        vault.retire_arm("A")
        vault.retire_arm("B", {"page": "search"})
        with pytest.raises(VaultError, match=r"'C' is the only arm that is offered in the decision \{'page'"):
            vault.retire_arm("C")
        with pytest.raises(InvalidInputError, match="arm 'A' is retired already"):
            vault.retire_arm("A")
        vault.retire_arm("B", {"page": "new"})
        vault.retire_arm("C", {"page": "new"})
        new = {"action": ["C"], "reward": [1], "user": ["x"], "id": ["p"], "page": ["new"], "country": ["FR"]}
        for dry_run in (True, False):
            with pytest.raises(VaultError, match=r"no arm is offered in the decision \{'page': 'new'"):
                vault.ingest(new, **COLUMNS, dry_run=dry_run)
        assert vault.verify().problems == ()
    with pytest.raises(InvalidInputError, match="a new vault has no arms yet"):
        sqlite_place.create(Configuration(actions=("A",), arms=(ArmRule("B", offered=False),)))


def test_a_vault_without_actions_or_keys_says_so(sqlite_place: Place) -> None:
    with created(sqlite_place, actions=None) as vault:
        with pytest.raises(VaultError, match="the vault has no actions yet"):
            vault.add_arm("D")
        vault.ingest({**LOG, "action": [1 if arm == "A" else 2 for arm in LOG["action"]]}, **COLUMNS)
        with pytest.raises(InvalidInputError, match="one decision, without key columns; got the key"):
            vault.retire_arm(1, {"page": "search"})
        vault.add_arm("3")
        assert vault.configuration.actions == (1, 2, 3)
        vault.retire_arm("2")
        assert vault.decide().action == 1


def test_a_change_that_changes_nothing_is_refused(sqlite_place: Place) -> None:
    with filled(sqlite_place, by=("page", "country")) as vault:
        vault.add_arm("D", {"page": "checkout"})
        vault.add_arm("D", {"page": "search", "country": "DE"})
        head = vault.head
        for where in ({"page": "checkout"}, {"page": "search", "country": "DE"}):
            with pytest.raises(InvalidInputError, match=r"arm 'D' is offered where page=.* already"):
                vault.add_arm("D", where)
        assert vault.head == head
        assert vault.add_arm("D", {"page": "search"}).decisions == 1


def test_declared_decisions_that_cannot_match_are_refused(sqlite_place: Place) -> None:
    configuration = Configuration(actions=("A", "B"), by=("page",))
    with Vault.create(
        sqlite_place.url, configuration, keys=sqlite_place.keys, decisions=[{"page": "checkout"}]
    ) as vault:
        head = vault.head
        for change in (vault.add_arm, vault.retire_arm):
            with pytest.raises(InvalidInputError, match="declared decisions has page=chekout; nothing"):
                change("C" if change == vault.add_arm else "B", {"page": "chekout"})
        assert vault.head == head
        assert vault.retire_arm("B", {"page": "checkout"}).decisions == 1
