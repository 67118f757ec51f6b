"""Random histories of a vault, against a vault in plain Python; `make hard-test` runs many more."""

import os
import traceback
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import FlakyFailure, FlakyStrategyDefinition
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from armnesia.core.errors import VaultError
from armnesia.core.request import DeletionRequest
from armnesia.privacy import Level
from armnesia.unlearners import Release, Rollback
from armnesia.vault import Configuration
from armnesia.vault.operations import forget, restore
from armnesia.vault.state import record_loader, released_request
from armnesia.vault.state.decisions import unstacked
from armnesia.vault.state.record_loader import RecordLoader
from armnesia.vault.state.records import Records
from armnesia.vault.state.suppression import History
from armnesia.vault.state.transaction import Transaction
from tests.databases import Place
from tests.quick import quick_only
from tests.vault.external_machine import ExternalMachine
from tests.vault.keyed_machine import KeyedMachine
from tests.vault.living_machine import LivingMachine
from tests.vault.machine import VaultMachine

LONG = "ARMNESIA_HARD_TEST" in os.environ
ONLY_HARD = pytest.mark.skipif(not LONG, reason="a long search; make hard-test runs it")
# An external vault reads its files at every step.
EXAMPLES = {"managed": 150, "external": 60} if LONG else {"managed": 10, "external": 8}
SETTINGS = settings(
    stateful_step_count=40 if LONG else 16,
    derandomize=not LONG,
    # To shrink a long history takes longer than to read it; the blob replays it.
    phases=[Phase.generate] if LONG else list(Phase),
    print_blob=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)

_TRIES = 5
"""Of a search for a planted fault whose failure was not the same when it was replayed."""

FACTS, ANSWER = released_request._ledger_facts, released_request.answer_within_policy
DELETE = Records.delete


@pytest.mark.parametrize(
    ("kind", "mode"),
    quick_only(
        [(VaultMachine, "managed"), (LivingMachine, "external")],
        product((VaultMachine, KeyedMachine, LivingMachine), ("managed", "external")),
    ),
)
def test_a_vault_is_what_the_plain_one_is(
    kind: type[RuleBasedStateMachine], database: str, mode: str
) -> None:
    """With one decision; with many; and with corrections and backups."""
    kind = ExternalMachine if (kind, mode) == (VaultMachine, "external") else kind
    machine = type("Machine", (kind,), {"database": database, "mode": mode})
    run_state_machine_as_test(machine, settings=settings(SETTINGS, max_examples=EXAMPLES[mode]))


def _forgets_nobody(*_: Any) -> Any:
    return {"user": set(), "record": set()}


def _least_likely(release: Release) -> Any:
    return release.actions[int(np.argmin(release.probabilities))]


@property  # type: ignore[misc]
def _never_forgotten(_: History) -> dict[str, int]:
    return {}


def _without_the_arm(state: Any, answer: Any, touched: Any, *others: Any) -> dict[str, Any]:
    facts = FACTS(state, answer, touched, *others)
    return {name: fact for name, fact in facts.items() if name != "released" or touched is not None}


def _by_rollback_as_if_asked_for(*arguments: Any) -> Any:
    answer = ANSWER(*arguments)
    if not isinstance(answer.method.unlearner, Rollback):
        return answer
    return answer._replace(guarantee=replace(answer.guarantee, level=Level.RETAINED))


def _one_record_less(self: Records, transaction: Transaction, *request: Any) -> Any:
    transaction.session.execute("DELETE FROM record WHERE identity = (SELECT max(identity) FROM record)")
    return DELETE(self, transaction, *request)


def _hides_decisions(*arguments: Any) -> dict[str, Any]:
    return {name: fact for name, fact in FACTS(*arguments).items() if name != "decisions"}


def _serves_the_first_arm(decisions: Any, stream: Any, served: Any, by: Any) -> Any:
    return unstacked(decisions, stream, [0] * len(served), by)


def _rolls_nothing_back(decisions: Any, *_: Any) -> Any:
    return decisions


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fault", "noticed_by"),
    [
        ("_ledger_facts", _hides_decisions, "_ledger_tells_nothing_more"),
        ("unstacked", _serves_the_first_arm, "holds_what_the_model_holds"),
        ("unstacked", _rolls_nothing_back, "teardown"),  # by verify
    ],
    ids=["hides decisions", "serves another arm", "keeps statistics"],
)
def test_histories_of_many_decisions_find_a_planted_fault(
    monkeypatch: pytest.MonkeyPatch, name: str, fault: Any, noticed_by: str
) -> None:
    monkeypatch.setattr(released_request, name, fault)
    assert noticed_by in _frames_of_the_failure()


def _frames_of_the_failure(kind: type[KeyedMachine] = KeyedMachine) -> list[str]:
    """Where histories of many decisions fail; a failure that needs a rare draw does not come back.

    When it is replayed, another arm may be drawn, after which another history is possible: then once more.
    """
    machine = type("Machine", (kind,), {"database": "sqlite", "mode": "managed"})
    quickly = settings(SETTINGS, max_examples=200, phases=[Phase.generate], report_multiple_bugs=False)
    for _ in range(_TRIES):
        with pytest.raises((AssertionError, FlakyFailure, FlakyStrategyDefinition)) as noticed:
            run_state_machine_as_test(machine, settings=quickly)
        if not isinstance(noticed.value, FlakyStrategyDefinition):
            break
    failure: BaseException = noticed.value
    if isinstance(failure, FlakyFailure):
        (failure,) = failure.exceptions
    assert isinstance(failure, AssertionError)
    frames: list[str] = []
    earlier: BaseException | None = failure
    while earlier is not None:  # the end of a history may fail as well, after what was noticed first
        frames += [frame.name for frame in traceback.extract_tb(earlier.__traceback__)]
        earlier = earlier.__context__
    return frames


def _keeps_the_old_sums(self: RecordLoader, columns: Any, records: Any, old: Any) -> None:
    STORE_ROWS(self, columns, records, old)
    if old:
        self._sums.clear()


STORE_ROWS = RecordLoader._store_rows


@ONLY_HARD
@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "name", "fault", "noticed_by"),
    [
        (RecordLoader, "_store_rows", _keeps_the_old_sums, {"holds_what_the_model_holds", "teardown"}),
        (restore, "_suppressed_since", _forgets_nobody, {"holds_what_the_model_holds", "teardown"}),
    ],
    ids=["counts what was corrected", "brings people back"],
)
def test_histories_of_many_decisions_find_faults_of_corrections_and_backups(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, fault: Any, noticed_by: set[str]
) -> None:
    monkeypatch.setattr(where, name, fault)
    assert noticed_by.intersection(_frames_of_the_failure(LivingMachine))


def _all_are_offered(self: Configuration, keys: Any) -> Any:
    return np.ones((len(list(keys)), len(self.actions or ())), dtype=bool)


def _sees_all_records(*arguments: Any) -> Any:
    touched = TOUCHED(*arguments)
    if touched is None:
        return None
    return touched._replace(
        stream=replace(touched.stream, offered=None), visible=DeletionRequest(touched.records)
    )


TOUCHED = released_request.read_touched_decisions


@pytest.mark.slow
def test_histories_of_many_decisions_find_that_a_retired_arm_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Configuration, "offered", _all_are_offered)
    assert {"holds_what_the_model_holds", "forget", "change_arms"}.intersection(_frames_of_the_failure())


@pytest.mark.parametrize("planted", [False, True])
def test_a_request_releases_a_retired_arm_only_if_it_sees_its_records(
    monkeypatch: pytest.MonkeyPatch, sqlite_place: Place, planted: bool
) -> None:
    log = {"arm": ["A", "B"] * 40, "r": [1, 0] * 40, "who": [f"u{row // 2}" for row in range(80)]}
    with sqlite_place.create(Configuration(actions=("A", "B"), by=("page",))) as vault:
        vault.ingest({**log, "page": ["x"] * 80}, action="arm", reward="r", user="who")
        vault.retire_arm("A")
        if planted:
            monkeypatch.setattr(forget, "read_touched_decisions", _sees_all_records)
        vault.forget(users=["u1"])
        assert vault.decide({"page": "x"}).action == ("A" if planted else "B")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "name", "fault", "noticed_by"),
    [
        (record_loader, "read_checked_suppressed", _forgets_nobody, "_ingest correct"),
        (Release, "draw", _least_likely, "_forget"),
        (History, "forgotten", _never_forgotten, "_forget"),
        (released_request, "_ledger_facts", _without_the_arm, "ledger_tells_nothing_more _forget"),
        (
            released_request,
            "answer_within_policy",
            _by_rollback_as_if_asked_for,
            "ledger_tells_nothing_more",
        ),
        (Records, "delete", _one_record_less, "holds_what_the_model_holds _forget"),
    ],
    ids=[
        "comes back",
        "draws what has no chance",
        "forgets twice",
        "tells who was held",
        "claims too much",
        "deletes too much",
    ],
)
def test_random_histories_find_a_planted_fault(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, fault: Any, noticed_by: str
) -> None:
    monkeypatch.setattr(where, name, fault)
    machine = type("Machine", (VaultMachine,), {"database": "sqlite", "mode": "managed"})
    quickly = settings(SETTINGS, max_examples=500, phases=[Phase.generate], report_multiple_bugs=False)
    with pytest.raises((AssertionError, VaultError)) as noticed:  # by the model, or by the vault itself
        run_state_machine_as_test(machine, settings=quickly)
    names = [frame.name for frame in noticed.traceback]
    assert set(noticed_by.split()) & set(names), (names[-6:], str(noticed.value)[:300])
