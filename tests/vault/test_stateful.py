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
from armnesia.privacy import Level
from armnesia.unlearners import Release, Rollback
from armnesia.vault import Configuration
from armnesia.vault.ledger.certificate import Certificate
from armnesia.vault.ledger.stored_certificate import StoredCertificate
from armnesia.vault.operations import forget, restore, status
from armnesia.vault.state import released_request
from armnesia.vault.state.corrections import Corrected
from armnesia.vault.state.decision_table import unstacked
from armnesia.vault.state.inheritance import Inheritance
from armnesia.vault.state.managed_records import ManagedRecords
from armnesia.vault.state.record_comparison import RecordComparison
from armnesia.vault.state.record_loader import RecordLoader
from armnesia.vault.state.suppression import RequestHistory
from armnesia.vault.state.transaction import Transaction
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

FACTS, RELEASE = released_request._ledger_facts, released_request.release_within_policy
DELETE = ManagedRecords.delete
HISTORY = RequestHistory.read


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
    """With one decision; with many; and with corrections, successors and backups."""
    kind = ExternalMachine if (kind, mode) == (VaultMachine, "external") else kind
    machine = type("Machine", (kind,), {"database": database, "mode": mode})
    run_state_machine_as_test(machine, settings=settings(SETTINGS, max_examples=EXAMPLES[mode]))


def _forgets_nobody(_: RecordComparison, owners: list[bytes]) -> Any:
    return np.zeros(len(owners), bool)


def _least_likely(release: Release) -> Any:
    return release.actions[int(np.argmin(release.probabilities))]


def _never_answered(*arguments: Any) -> Any:
    return replace(HISTORY(*arguments), answered_before=False)


def _with_counts(*arguments: Any) -> dict[str, Any]:
    return FACTS(*arguments) | {"counts": [0] * 3}


def _by_rollback_as_if_asked_for(*arguments: Any) -> Any:
    answer, release, stream = RELEASE(*arguments)
    if isinstance(answer.unlearner, Rollback):
        release = replace(release, guarantee=replace(release.guarantee, level=Level.RETAINED))
    return answer, release, stream


def _as_it_is_stored(self: StoredCertificate, _: Any) -> Certificate | None:
    return self.issued


def _nothing(*_: Any) -> list[int]:
    return []


def _one_record_less(self: ManagedRecords, transaction: Transaction, *request: Any) -> Any:
    transaction.session.execute("DELETE FROM record WHERE identity = (SELECT max(identity) FROM record)")
    return DELETE(self, transaction, *request)


JOINT_FACTS = released_request._joint_facts


def _lists_decisions(state: Any, touched: Any, *others: Any) -> dict[str, Any]:
    return JOINT_FACTS(state, touched, *others) | {"decisions": []}


def _serves_the_first_arm(decisions: Any, stream: Any, served: Any, by: Any) -> Any:
    return unstacked(decisions, stream, [0] * len(served), by)


def _rolls_nothing_back(decisions: Any, *_: Any) -> Any:
    return decisions


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fault", "noticed_by"),
    [
        ("_joint_facts", _lists_decisions, "_ledger_tells_nothing_more"),
        ("unstacked", _serves_the_first_arm, "holds_what_the_model_holds"),
        ("unstacked", _rolls_nothing_back, "teardown"),  # by verify
    ],
    ids=["tells decisions", "serves another arm", "keeps statistics"],
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


def _keeps_the_old_sums(self: RecordLoader, corrected: Corrected) -> None:
    DELETE_CORRECTED(self, corrected)
    self._sums.clear()


def _suppresses_nobody(*_: Any) -> Any:
    return iter(())


def _nobody_since(*_: Any) -> Any:
    return {"user": set(), "record": set()}


DELETE_CORRECTED = RecordLoader._delete_corrected


@ONLY_HARD
@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "name", "fault", "noticed_by"),
    [
        (RecordLoader, "_delete_corrected", _keeps_the_old_sums, {"holds_what_the_model_holds", "teardown"}),
        (Inheritance, "rows", _suppresses_nobody, {"holds_what_the_model_holds"}),
        (restore, "_suppressed_since", _nobody_since, {"holds_what_the_model_holds", "teardown"}),
    ],
    ids=["counts what was corrected", "forgets whom the old vault forgot", "brings people back"],
)
def test_histories_of_many_decisions_find_faults_of_corrections_successors_and_backups(
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
    return touched._replace(stream=replace(touched.stream, offered=None), visible=touched.request)


TOUCHED = released_request.read_touched_decisions


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "name", "fault", "noticed_by"),
    [
        (Configuration, "offered", _all_are_offered, {"holds_what_the_model_holds", "forget"}),
        (forget, "read_touched_decisions", _sees_all_records, {"forget"}),
    ],
    ids=["decides", "releases"],
)
def test_histories_of_many_decisions_find_that_a_retired_arm_is_served(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, fault: Any, noticed_by: set[str]
) -> None:
    monkeypatch.setattr(where, name, fault)
    assert noticed_by.intersection(_frames_of_the_failure())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "name", "fault", "noticed_by"),
    [
        (RecordComparison, "_forgotten", _forgets_nobody, "_ingest"),
        (Release, "draw", _least_likely, "_forget"),
        (RequestHistory, "read", _never_answered, "_forget"),
        (released_request, "_ledger_facts", _with_counts, "ledger_tells_nothing_more"),
        (
            released_request,
            "release_within_policy",
            _by_rollback_as_if_asked_for,
            "ledger_tells_nothing_more",
        ),
        (ManagedRecords, "delete", _one_record_less, "holds_what_the_model_holds _forget"),
        pytest.param(
            *(StoredCertificate, "valid", _as_it_is_stored, "_certificate_is_good"), marks=ONLY_HARD
        ),
        pytest.param(
            *(status, "certificates_to_reissue", _nothing, "certificates_are_valid_against_the_ledger"),
            marks=ONLY_HARD,
        ),
    ],
    ids=[
        "comes back",
        "draws what has no chance",
        "forgets twice",
        "tells counts",
        "claims too much",
        "deletes too much",
        "hands out what a stolen key signed",
        "does not count what must be reissued",
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
    assert set(noticed_by.split()).intersection(frame.name for frame in noticed.traceback)
