"""Random histories of a vault that lives: also with corrections and restored backups."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from armnesia.vault import Vault
from tests.vault.keyed_machine import ANSWERS, KeyedMachine
from tests.vault.machine import corrections, records, user_requests
from tests.vault.plain_vault import PlainVault, Record, columns_of
from tests.vault.raw_vaults import Snapshot


class LivingMachine(KeyedMachine):
    """A vault with many decisions, arms that come and go, and these rules."""

    def __init__(self) -> None:
        super().__init__()
        self.replaced = self.replaced_before = 0
        self.backup: tuple[Snapshot, PlainVault, dict[str, str], dict[str, tuple[str, ...]]] | None = None

    @initialize(answer=st.sampled_from(ANSWERS), ids=st.booleans(), first=records())
    def create(self, answer: dict[str, Any], ids: bool, first: list[Record]) -> None:
        super().create(answer, ids)
        self.ingest(first)

    @precondition(
        lambda self: self.mode == "managed" and any(record.id for record in self.model.records.values())
    )
    @rule(data=st.data(), others=records())
    def correct(self, data: st.DataObject, others: list[Record]) -> None:
        batch = data.draw(corrections(self.model), label="corrected")
        known = {record.id for record in batch}
        batch += [record for record in others if record.id not in known]
        if not self._has_arms(batch):
            return
        touched = {page for record in batch for page in self._pages_of(record)}
        done = self._vault.ingest(columns_of(batch), replace=True)
        assert (done.added, done.replaced, done.already_there, done.suppressed) == self.model.correct(batch)
        self.replaced += done.replaced
        for page in touched:
            self.served[page] = self._decision(page)

    def _pages_of(self, record: Record) -> set[str]:
        """The decisions that lose or get a row, or exchange it."""
        held = self.model.records.get((record.id,))
        if held == record or self.model.keeps_out(record):
            return set()
        return {record.page} if held is None else {record.page, held.page}

    @precondition(lambda self: self.mode == "managed")
    @rule()
    def back_up(self) -> None:
        (self.folder / "backup.db").unlink(missing_ok=True)
        snapshot = Snapshot(self.place, self._vault, self.folder)
        offers = {page: self._offers(page) for page in self.model.pages}
        self.backup = (snapshot, self.model.copy(), dict(self.served), offers)
        self.replaced_before = self.replaced

    @precondition(lambda self: self.backup is not None and self.backup[1] != self.model)
    @rule()
    def restore_what_is_old(self) -> None:
        """Rows, corrections and decisions of after the backup are lost, and everyone forgotten stays so."""
        assert self.backup is not None
        snapshot, before, served, offers = self.backup
        self._vault.close()
        snapshot.put_back()
        replayed = len(self.model.kinds) - len(before.kinds)
        lost = self.replaced - self.replaced_before
        done = Vault.restore(self.place.url, keys=self.place.keys)
        assert (done.replayed, done.corrections_lost) == (replayed, lost)
        self.vault = self.place.open()
        self.model.restore(before)
        self.served = {
            page: served[page] if self._is_as_in(before, page, offers) else self._decision(page)
            for page in self.model.pages
        }
        self.back_up()

    @precondition(lambda self: self.mode == "managed")
    @rule(users=user_requests)
    def forget_and_restore_what_was_before(self, users: list[str]) -> None:
        self.back_up()
        self.forget(users)
        if self.backup is not None and self.backup[1] != self.model:  # it may have been forgotten before
            self.restore_what_is_old()

    def _is_as_in(self, backup: PlainVault, page: str, offers: dict[str, tuple[str, ...]]) -> bool:
        """Whether a decision has the records, the arms and the deleted counts that it has in a backup."""
        now, then = (
            {identity for identity, record in model.records.items() if record.page == page}
            for model in (self.model, backup)
        )
        gone = [[model.gone[page, action] for action in "ABCD"] for model in (self.model, backup)]
        return (
            page in backup.pages and now == then and gone[0] == gone[1] and self._offers(page) == offers[page]
        )
