"""A process that works on a vault is killed at random moments: no deletion is lost, doubled or half done.

`make hard-test` runs the long version.
"""

import os
import random
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from armnesia.unlearners.stream import Penalty
from armnesia.vault import Configuration, UserType, Vault
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.state.decision_table import put_decisions, read_decisions
from armnesia.vault.state.decisions import ArmSums, decided
from tests.databases import fresh_place
from tests.vault.crash_driver import ACTIONS, Crashes, half_done, not_once
from tests.vault.forked_children import nursery
from tests.vault.plain_vault import PlainVault, Record, columns_of, vault_columns

LONG = "ARMNESIA_HARD_TEST" in os.environ
KILLS = {"sqlite": 320 if LONG else 12, "postgresql": 120 if LONG else 8}
KILLS_OF_ONE = 5 if LONG else 2
A_VAULT_LASTS = 20
KINDS: tuple[tuple[str, Penalty, tuple[str, ...]], ...] = (
    ("managed", "retained", ()),
    ("managed", "frozen", ()),
    ("managed", "frozen", ("page",)),
    ("external", "retained", ()),
    ("external", "frozen", ()),
    ("external", "retained", ("page",)),
)


@pytest.mark.slow
def test_nothing_is_lost_or_half_done_when_the_process_is_killed(database: str, tmp_path: Path) -> None:
    chance = random.Random(17)
    kills, done, not_done, killed_in = 0, 0, 0, Counter[str]()
    started = time.perf_counter()
    with nursery("tests.vault.crash_driver") as children:
        for number in range(-(-KILLS[database] // A_VAULT_LASTS) if LONG else 3):
            mode, penalty, by = KINDS[number % 6] if LONG else KINDS[2 * number]
            place = fresh_place(database, tmp_path)
            unlearner = "frozen_rollback" if penalty == "frozen" else "rollback"
            configuration = Configuration(
                actions=ACTIONS,
                user_type=UserType.TEXT,
                columns=vault_columns(ids=True),
                mode=mode,
                penalty=penalty,
                unlearner=unlearner,
                by=by,
            )
            place.create(configuration).close()
            model = PlainVault(ACTIONS, managed=mode == "managed", frozen=penalty == "frozen", keyed=bool(by))
            folder = tmp_path / f"vault-{number}"
            folder.mkdir()
            crashes = Crashes(place, model, children, folder, chance)
            crashes.calibrate()
            for _ in range(A_VAULT_LASTS if LONG else -(-KILLS[database] // 3)):
                crashes.kill_once()
            crashes.kill_in(crashes.change_of_arms, KILLS_OF_ONE)
            if model.managed:
                crashes.kill_in(crashes.correction, KILLS_OF_ONE)
            crashes.check_all()
            kills += crashes.kills
            done += crashes.done_unacknowledged
            not_done += crashes.not_done
            killed_in.update(crashes.killed_in)
    assert kills >= KILLS[database]
    assert {"replace"} < set(killed_in) & {"replace", "add_arm", "retire_arm"}
    print(
        f"{database}: {kills} kills in {time.perf_counter() - started:.0f} s; the operation that was killed"
        f" was done {done} times, not done {not_done} times, by kind {dict(killed_in)}"
    )


RECORDS = [Record("A", 4, "ann", "1"), Record("B", 0, "ann", "2"), Record("B", 4, "bob", "3")]
ANN = ("users", ("ann",))


def _filled(tmp_path: Path) -> tuple[Vault, PlainVault, PlainVault]:
    """A vault, its model, and the model without Ann."""
    configuration = Configuration(actions=ACTIONS, user_type=UserType.TEXT, columns=vault_columns(ids=True))
    vault = fresh_place("sqlite", tmp_path).create(configuration)
    vault.ingest(columns_of(RECORDS), user="user", id="id")
    before = PlainVault(ACTIONS)
    before.ingest(RECORDS)
    after = before.copy()
    after.forget(ANN)
    return vault, before, after


def test_the_checks_pass_before_and_after_a_deletion(tmp_path: Path) -> None:
    vault, before, after = _filled(tmp_path)
    with vault:
        assert not half_done(vault, before, after)
        entry = vault.forget(users=["ann"]).entry
        assert not half_done(vault, before, after)
        assert not not_once(vault, {("users", "ann"): entry})
        assert half_done(vault, before, before)


def test_rows_that_are_gone_without_a_ledger_entry_are_noticed(tmp_path: Path) -> None:
    vault, before, after = _filled(tmp_path)
    with vault:
        with vault.database.writing() as session:
            ann = vault.all_keys.owner_digests(["ann"])[0]
            assert session.execute("DELETE FROM record WHERE owner = ?", ann) == 2
        problems = half_done(vault, before, after)
        assert any(problem.startswith("verify: statistics") for problem in problems)
        assert any(problem.startswith("rows") for problem in problems)


def test_rows_and_statistics_that_are_gone_without_a_ledger_entry_are_noticed(tmp_path: Path) -> None:
    """Such a half deletion is consistent in itself: only the ledger and the list do not know of it."""
    vault, before, after = _filled(tmp_path)
    connection = vault
    with vault:
        with connection.writing() as transaction:
            target = ErasureTarget.of(users=["ann"])
            deleted = connection.records.delete(transaction, target, None)
            (decision,) = read_decisions(transaction)
            left = list(zip(decision.statistics.counts, decision.statistics.units, strict=True))
            for arm, count, units, _ in deleted.sums[1]:
                left[arm] = left[arm][0] - count, left[arm][1] - units
            counts, sums = zip(*left, strict=True)
            rolled_back = replace(decision, statistics=ArmSums(counts, sums))
            put_decisions(transaction, decided([rolled_back], transaction.state.configuration))
            transaction.note("record", deleted.rows)
        assert vault.verify().holds
        assert any(problem.startswith("kinds") for problem in half_done(vault, before, after))


@pytest.mark.parametrize(
    ("table", "problem"), [("suppressed", "suppressed"), ("people", "requests"), ("entry", "verify")]
)
def test_a_deletion_that_lacks_a_part_is_noticed(tmp_path: Path, table: str, problem: str) -> None:
    vault, before, after = _filled(tmp_path)
    with vault:
        vault.forget(users=["ann"])
        with vault.database.writing() as session:
            session.execute(f"DELETE FROM {table}")
        assert any(found.startswith(problem) for found in half_done(vault, before, after))


def test_a_deletion_that_was_acknowledged_and_is_lost_is_noticed(tmp_path: Path) -> None:
    vault, _, _ = _filled(tmp_path)
    with vault:
        assert not_once(vault, {("users", "ann"): 2})
