"""Random histories of a vault with many decisions beside a vault in plain Python."""

import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from armnesia import LCB, ArmStatistics, Budget, DeletionRequest
from armnesia.core.errors import ArmnesiaError, VaultError
from armnesia.privacy import Level
from armnesia.unlearners.joint import budget_of_each
from armnesia.vault import Configuration, Forgotten, Policy, UserType, Vault
from tests.databases import fresh_place
from tests.vault.machine import ACTIONS, USERS, records, user_requests
from tests.vault.plain_vault import (
    PlainVault,
    Record,
    columns_of,
    observed,
    statistics_of,
    vault_columns,
    without_ids,
    write_csv,
)

CONFIDENCE = 0.5
"""Low, so that a few records decide."""
PLACES = (None, "page 0", "page 1", "page 2")
ANSWERS: tuple[dict[str, Any], ...] = (
    {"unlearner": "rollback"},
    {"unlearner": "frozen_rollback", "penalty": "frozen"},
    {"unlearner": "tilt", "epsilon": 1.0, "delta": 0.01},
    {"unlearner": "gaussian", "epsilon": 1.0, "delta": 0.01},
)


class KeyedMachine(RuleBasedStateMachine):
    """The rules; subclasses say on which database, and where the rows are."""

    database: ClassVar[str]
    mode: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.vault: Vault | None = None

    def teardown(self) -> None:
        try:
            if self.vault is not None:
                assert self.vault.verify().problems == ()
        finally:
            if self.vault is not None:
                self.vault.close()
            shutil.rmtree(self.folder)

    @property
    def _vault(self) -> Vault:
        assert self.vault is not None
        return self.vault

    @initialize(answer=st.sampled_from(ANSWERS), ids=st.booleans())
    def create(self, answer: dict[str, Any], ids: bool) -> None:
        self.ids = ids
        self.place = fresh_place(self.database, self.folder)
        configuration = Configuration(
            actions=ACTIONS,
            user_type=UserType.TEXT,
            columns=vault_columns(ids=ids),
            by=("page",),
            mode=self.mode,
            confidence=CONFIDENCE,
            policy=Policy(1.0, 0.1, tuple(Level)),
            **answer,
        )
        self.vault = self.place.create(configuration)
        frozen = configuration.penalty == "frozen"
        self.model = PlainVault(ACTIONS, managed=self.mode == "managed", frozen=frozen, keyed=True)
        self.served: dict[str, str] = {}
        self.changes: list[tuple[str, bool, str | None]] = []
        self.declared: tuple[str, ...] = ACTIONS

    @rule(batch=records())
    def ingest(self, batch: list[Record]) -> None:
        batch = batch if self.ids else without_ids(batch)
        source: Any = columns_of(batch)
        if not self._has_arms(batch):
            return
        if self.mode == "external":
            self._count(batch)
            return
        if self.model.contradicts(batch):
            with pytest.raises(VaultError, match="an id that the vault holds with another action"):
                self._vault.ingest(source)
            return
        before = self._all_statistics()
        would, expected = self._vault.ingest(source, dry_run=True), self.model.ingest(batch)
        done = self._vault.ingest(source)
        assert (would.added, would.already_there, would.suppressed) == expected
        assert (done.added, done.already_there, done.suppressed) == expected
        assert would.decisions == done.decisions
        self._decide_where_changed(before)

    def _count(self, batch: list[Record]) -> None:
        """Ingest one more file of a folder."""
        folder = self.folder / f"{self.place.keys.name}-log"
        folder.mkdir(exist_ok=True)
        file = folder / f"{len(list(folder.iterdir()))}.csv"
        write_csv(file, batch)
        before = self._all_statistics()
        done = self._vault.ingest(str(folder / "*.csv"))
        assert (done.added, done.already_there, done.suppressed) == self.model.ingest(batch, str(file))
        assert done.recounted_because is None
        self._decide_where_changed(before)

    def _has_arms(self, batch: list[Record]) -> bool:
        """Rows of a decision without arms are refused, in tests of their own."""
        return all(map(self._offers, {record.page for record in batch} - self.model.pages))

    def _all_statistics(self) -> dict[str, ArmStatistics]:
        return {page: self._statistics(page, self.model.actions) for page in self.model.pages}

    def _decide_where_changed(self, before: dict[str, ArmStatistics]) -> None:
        """Decisions decide again whose records changed; also if their sums happen to be as before."""
        for page, statistics in self._all_statistics().items():
            if before.get(page) != statistics:
                self.served[page] = self._decision(page)

    @rule(users=user_requests)
    def forget(self, users: list[str]) -> None:
        request = ("users", tuple(sorted(users)))
        unknown = not all(("users", name) in self.model.suppressed for name in users)
        if self.mode == "external" and unknown and not self._vault.status().sources:
            with pytest.raises(VaultError, match="the vault has counted no source yet"):
                self._vault.forget(users=users, exactly=True)
            return
        lost = [self.model.records[identity] for identity in self.model.held(request)]
        repeated = self.model.is_repeated(request)
        touched = sorted({record.page for record in lost})
        possible = self._possible(touched, lost) if touched and not repeated else {}
        done = self._vault.forget(users=users, exactly=True)
        assert {action: n for action, n in done.counts.items() if n} == self.model.forget(request)
        assert done.repeated is repeated
        assert done.decisions is not None
        assert {each.key["page"] for each in done.decisions} == set(possible)
        for each in done.decisions:
            page = each.key["page"]
            own = [record for record in lost if record.page == page]
            assert dict(each.counts) == {a: sum(r.action == a for r in own) for a in self.model.actions}
            assert each.served_before == self.served[page]
            assert each.served in possible[page]
            self.served[page] = each.served
        if not repeated:
            self._ledger_tells_nothing_more(done)

    def _possible(self, pages: list[str], lost: list[Record]) -> dict[str, set[Any]]:
        """The arms that each touched decision may release, by the library on the records of offered arms."""
        configuration = self._vault.configuration
        unlearner = configuration.make_unlearner()
        parts = {
            page: [r for r in lost if r.page == page and r.action in self._offers(page)] for page in pages
        }
        binary = all(r.quarters in (0, 4) for part in parts.values() for r in part)
        budget = budget_of_each(
            unlearner,
            Budget(epsilon=configuration.epsilon, delta=configuration.delta),
            sum(map(bool, parts.values())),
            "best",
        )
        possible = {}
        for page, part in parts.items():
            request = DeletionRequest(statistics_of(self._offers(page), part), binary)
            release = unlearner.release(self._learner(page), self._statistics(page), request, budget)
            each = zip(self._offers(page), release.probabilities.tolist(), strict=True)
            possible[page] = {action for action, p in each if p > 0}
            if not part and release.guarantee.level.sees_shape:  # what an earlier request released stays
                possible[page] = {self.served[page]}
        return possible

    def _learner(self, page: str) -> Any:
        learner = LCB(confidence=CONFIDENCE)
        if not self.model.frozen:
            return learner
        return learner.with_frozen_penalty([self.model.gone[page, action] for action in self._offers(page)])

    def _statistics(self, page: str, arms: tuple[str, ...] | None = None) -> ArmStatistics:
        """Of the offered arms alone, or of others."""
        own = [r for r in self.model.records.values() if r.page == page]
        return statistics_of(self._offers(page) if arms is None else arms, own)

    def _decision(self, page: str) -> Any:
        return self._learner(page).decide(self._statistics(page)).action

    def _offers(self, page: str) -> tuple[str, ...]:
        """The arms that a decision offers: of the changes that concern it, the last of each arm holds."""
        offered = dict.fromkeys(self.declared, True)
        for arm, added, where in self.changes:
            if where in (None, page):
                offered[arm] = added
        return tuple(arm for arm in self.model.actions if offered.get(arm, False))

    @rule(arm=st.sampled_from("ABCD"), added=st.booleans(), where=st.sampled_from(PLACES))
    def change_arms(self, arm: str, added: bool, where: str | None) -> None:
        before = {page: self._offers(page) for page in self.model.pages}
        actions = self.model.actions
        if added and arm not in actions:
            self.model.actions = (*actions, arm)
        self.changes.append((arm, added, where))
        after = {page: self._offers(page) for page in self.model.pages}
        change = self._vault.add_arm if added else self._vault.retire_arm
        try:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                done = change(arm, None if where is None else {"page": where})
        except ArmnesiaError:  # it has no effect, or would leave a decision without arms
            assert before == after or not all(after.values())
            self.model.actions = actions
            self.changes.pop()
            return
        assert all(after.values())
        assert not told or where not in before  # a key that no row has brought yet may be a wrong one
        changed = [page for page in before if before[page] != after[page]]
        assert done.decisions == len(changed)
        self.model.note("arms")
        self.served |= {page: self._decision(page) for page in changed}
        for page, offers in after.items():
            assert self._vault.arms({"page": page}).offered == offers

    @rule(users=user_requests)
    def readmit(self, users: list[str]) -> None:
        known = [user for user in users if ("users", user) in self.model.suppressed]
        if known and self.mode == "managed":
            self._vault.readmit(users=known)
            self.model.readmit(("users", tuple(sorted(known))))

    @rule()
    def rotate(self) -> None:
        self._vault.rotate_signing_key()
        self.model.note("signing_key")

    @rule()
    def reopen(self) -> None:
        self._vault.close()
        self.vault = self.place.open()

    @rule()
    def verify(self) -> None:
        found = self._vault.verify()
        assert found.problems == ()
        assert found.records == len(self.model.records)

    @rule()
    def restore_what_is_not_old(self) -> None:
        assert Vault.restore(self.place.url, keys=self.place.keys).replayed == 0
        self.model.note("restored")
        if self.mode == "external":  # its sources were read again
            self.served = {page: self.served[page] for page in self.model.pages}

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        if self.vault is None:
            return
        assert observed(self.vault) == self.model.expected()
        found = self.vault.decisions()
        assert dict(zip((key["page"] for key in found.keys), found.actions, strict=True)) == self.served
        for page, action in self.served.items():
            assert self.vault.decide(where={"page": page}).action == action

    def _ledger_tells_nothing_more(self, done: Forgotten) -> None:
        """No id, no reward; decisions only where the level makes them public."""
        entry = self._vault.certificate(entry=done.entry).entry
        text = entry.payload.decode()
        assert not any(name in text for name in (*USERS, "record-"))
        decisions = entry.facts.get("decisions")
        assert (decisions is not None) == Level.named(entry.facts["level"]).sees_shape
        assert ("page " in text) == bool(decisions)
