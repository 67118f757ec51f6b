"""A transaction on a vault: a session of the database, the keys, and the state."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from typing import Any

from armnesia.core.errors import ArmnesiaError
from armnesia.vault.configuration import MANAGED
from armnesia.vault.keys.canonical_json import utc_now
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import Entry, Head
from armnesia.vault.state.decisions import count_in_decisions
from armnesia.vault.state.sealed_state import State, StoredState, store_statements
from armnesia.vault.state.table_digests import TableDigests
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row, Session, Statement

CODE = f"armnesia {metadata.version('armnesia')}"
"""The code that writes an entry of the ledger."""


@dataclass
class Transaction:
    """One transaction; `state` is the one that it read or stored last.

    `append` and `add` collect what belongs to the next state; `store` sends it with the state, in one batch.
    """

    session: Session
    all_keys: Keyring
    """Every key of the vault; one may be in the keys' file before it is in use."""
    state: State
    intact: bool = True
    """False if the stored state was changed by something else, and was replaced by a replayed one."""
    stored: StoredState | None = None
    """The rows of the state, if this transaction stored one."""
    collected: list[Statement] = field(default_factory=list)
    """What the next `store` sends with the state."""
    sent: list[Statement] = field(default_factory=list)
    """What was stored so far, to be read back before the commit."""
    _appended: Head | None = None
    """The head of the ledger with the entries that were appended since the last `store`."""
    needs_savepoints: bool = True
    """Whether an attempt may change tables before it is refused."""
    lists: Mapping[bytes, list[Row]] | None = None
    """Rows of the suppression list and of the answered requests, by digest, if they were read ahead."""
    schema_check: Callable[[], Callable[[], list[str]]] | None = None
    """Begins the check of the tables, if that is still to be done; see `Database.begin_schema_check`."""
    _begun_check: Callable[[], list[str]] | None = None

    def begin_schema_check(self) -> None:
        """Begin the check of the tables if it was left for later, best after the last query."""
        if self.schema_check is not None and self._begun_check is None:
            self._begun_check = self.schema_check()

    def schema_problems(self) -> list[str]:
        """What is found by a check of the tables that was left for later."""
        self.begin_schema_check()
        return [] if self._begun_check is None else self._begun_check()

    @cached_property
    def keyring(self) -> Keyring:
        """The keys that the state uses."""
        return self.state.keyring_in_use(self.all_keys)

    def count_records(self) -> int:
        """How many records are counted; with many decisions, those of each are added up."""
        if self.state.configuration.by:
            if self.state.configuration.mode == MANAGED:
                return tables.count_records(self.session)
            return count_in_decisions(tables.stream_decisions(self.session))
        return 0 if self.state.decision is None else sum(self.state.decision.statistics.counts)

    def append(self, kind: str, *, new_signer: Keyring | None = None, **facts: Any) -> Entry:
        """Append an entry to the ledger, with the next `store`.

        An entry that puts a signing key in use is signed with it, by `new_signer`.
        """
        head = self._appended or self.state.head
        entry = Entry.next_after(
            head.sequence, head.hash, vault=self.state.vault, kind=kind, time=utc_now(), code=CODE, **facts
        )
        if new_signer is not None:
            entry = Entry({**entry.fields, "signed_by_new": new_signer.sign(entry.text.encode()).hex()})
        self.collected.append(tables.insert_entry(entry.sequence, entry.text, entry.hash))
        self._appended = entry.head
        return entry

    def add(self, *statements: Statement) -> None:
        """Add statements to the batch of the next `store`."""
        self.collected += statements

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Do something that may be refused by an `ArmnesiaError`: then nothing of it is left.

        After any other error the whole transaction is rolled back anyway, and the database may have begun.
        """
        before = {**vars(self), "collected": [*self.collected]}
        n_sent = len(self.sent)
        if self.needs_savepoints:
            tables.set_savepoint(self.session)
        try:
            yield
        except ArmnesiaError:
            if self.needs_savepoints:
                tables.return_to_savepoint(self.session)
            vars(self).clear()
            vars(self).update(before)
            del self.sent[n_sent:]
            raise
        if self.needs_savepoints:
            tables.release_savepoint(self.session)

    def store(
        self, state: State, *, digests: TableDigests | None = None, all_keys: Keyring | None = None
    ) -> None:
        """Store a new state, at the head of the appended entries.

        `digests` are those of its tables, if they changed; `all_keys` has keys that are new in it.
        """
        self.all_keys = all_keys or self.all_keys
        head, self.keyring = self._appended or state.head, state.keyring_in_use(self.all_keys)
        statements, self.stored, self.state = store_statements(
            self.state, state, state.digests if digests is None else digests, head, self.keyring
        )
        statements = [*self.collected, *statements]
        self.session.execute_together(statements)
        self.sent += statements
        self.collected, self._appended = [], None
