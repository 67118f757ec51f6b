"""A connection to a vault: its database, its keys, its pinned head, and transactions on its state."""

import json
import os
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from armnesia.core.errors import (
    ArmnesiaError,
    DamagedDatabaseError,
    DatabaseError,
    InvalidInputError,
    VaultBusyError,
    VaultError,
    refuse_first,
)
from armnesia.core.files import refuse_null_characters
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import Head, leads_to
from armnesia.vault.ledger.pinned_head import PinnedHead
from armnesia.vault.ledger.public_keys import SigningKey
from armnesia.vault.state.diagnosis import changed_values, has_changed_values
from armnesia.vault.state.record_modes import records_of
from armnesia.vault.state.records import Records
from armnesia.vault.state.replay import ReplayedState
from armnesia.vault.state.sealed_state import State, StoredState, changed_outside, check_identity
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Database, Session, database_error
from armnesia.vault.storage.opening import database_module, open_database
from armnesia.vault.storage.schema import TABLES, VERSION

Accept: TypeAlias = Literal["intact", "damaged", "any"]
"""Which vaults are opened: intact ones; also damaged ones that are not older than their pinned head, for
`rebuild`; or any, for operations that say what is wrong (`verify`) or repair it (`restore`)."""


@dataclass
class VaultConnection:
    """A connection to a vault, for one thread of one process."""

    database: Database
    all_keys: Keyring
    """Those of the keys' file: the state says which of them it uses."""
    keys_path: Path
    pinned_head: PinnedHead
    records: Records
    accept: Accept = "intact"
    erased_at: Head | None = None
    """A head of the ledger; this process knows that all bytes deleted up to it have left the files.

    That holds as long as nothing puts old rows back: until the next `restore` or `rebuild`.
    """
    signing_keys: tuple[SigningKey, ...] = ()
    """The history of the signing keys, if it was read: a cache, valid for as many keys as are in use."""
    checked: StoredState | None = None
    """The rows that this process last stored, or whose seal it last checked: a cache."""
    cached_state: State | None = None
    """The state that these rows mean, if it was needed."""

    def expected_head(self) -> Head | None:
        """The pinned head, to be read before a transaction begins: its state must not be older.

        Other processes append to the ledger before they pin its head. None if an older copy is accepted.
        """
        return None if self.accept == "any" else self.pinned_head.read()

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Begin a transaction that sees one snapshot of the vault, not older than the pinned head."""
        head_before = self.expected_head()
        with self._explaining_failures(), self.database.reading() as session:
            state = self.load_state(session, head_before)
            yield Transaction(session, self.all_keys, state)

    @contextmanager
    def reading_snapshot(self) -> Iterator[Transaction]:
        """As `reading`, for work that takes long: others are held back as little as the database allows."""
        head_before = self.expected_head()
        with self._explaining_failures(), self.database.snapshot() as (session, _):
            yield Transaction(session, self.all_keys, self.load_state(session, head_before))

    @contextmanager
    def writing(
        self,
        load: Callable[[Session, Head | None], tuple[State, bool]] | None = None,
        *,
        schema_last: bool = False,
    ) -> Iterator[Transaction]:
        """Begin the one write transaction at a time; pin the new head of the ledger after the commit.

        `load` replaces `load_state` where the state may be broken; it also says whether it is intact. With
        `schema_last` the tables are checked before the commit, and not before the first query: a server can
        do so while the transaction computes, and what a damaged file lets it write over the schema is
        noticed.
        """
        head_before = self.expected_head()
        with self._explaining_failures(schema_last), self.database.writing() as session:
            if load is None:
                before, intact = self.load_state(session, head_before, schema_last), True
            else:
                before, intact = load(session, head_before)
            transaction = Transaction(session, self.all_keys, before, intact)
            if schema_last:
                tables_now = TABLES[self.records.layout, VERSION]
                transaction.schema_check = partial(self.database.begin_schema_check, session, tables_now)
            yield transaction
            _refuse_other_schema(transaction.schema_problems())
            assert not transaction.collected, "statements were collected and not stored"
            self.database.confirm_stored(session, transaction.sent)
        self.all_keys = transaction.all_keys
        if transaction.stored is not None:
            self.checked, self.cached_state = transaction.stored, transaction.state
        if transaction.state.head != before.head:
            self.pinned_head.write(transaction.state.head, committed=True)

    @contextmanager
    def _explaining_failures(self, schema_last: bool = False) -> Iterator[None]:
        """Say that values, or tables, were changed by something else, where a transaction failed for that.

        Any other failure, such as a mistake of the caller, stays as it is. `schema_last`: the transaction
        has not checked the tables before it used them.
        """
        try:
            yield
        except VaultBusyError:
            raise
        except ArmnesiaError:
            _refuse_other_schema(self._schema_problems_now() if schema_last else [])
            raise
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError) as error:
            with self.database.reading() as session:
                explained = has_changed_values(session, self.all_keys, self.records.layout)
            if explained:
                traceback.clear_frames(error.__traceback__)  # they would keep cursors of the database open
                raise changed_values() from error
            raise

    def _schema_problems_now(self) -> list[str]:
        """Where the tables are not as armnesia creates them, if the database can be asked."""
        with suppress(ArmnesiaError), self.database.reading() as session:
            return self.schema_problems(session)
        return []

    def load_state(self, session: Session, head_before: Head | None, schema_last: bool = False) -> State:
        """Read the state, with what this process knows of erasure."""
        stored = self.read_checked(session, head_before, schema_last)
        if self.cached_state is None:
            self.cached_state = stored.state(stored.keyring_in_use(self.all_keys))
        state = self.cached_state
        if self.erased_at is None or self.erased_at.sequence <= state.erased_through:
            return state
        if not self._still_erased(session, state.head, self.erased_at):
            self.erased_at = None
            return state
        return state.changed(erased_through=self.erased_at.sequence)

    @staticmethod
    def _still_erased(session: Session, head: Head, erased_at: Head) -> bool:
        """Whether the ledger goes on from a head without an entry by which old rows may have come back."""
        if head == erased_at:
            return True
        _, hash_ = tables.read_entry(session, erased_at.sequence) or ("", "")
        return hash_ == erased_at.hash and not tables.has_restored_since(session, erased_at.sequence)

    def read_checked(
        self, session: Session, head_before: Head | None, schema_last: bool = False
    ) -> StoredState:
        """Read the rows of the state and check them.

        Refused are a state older than `head_before` (a backup may have been put in the database's place while
        this process had it open), one that does not match its seal, and tables that are not as armnesia
        created them. If a later head is found, it is pinned before anything is made of the state: a process
        may have been killed between its commit and the writing of the pin. With `schema_last`, the tables of
        a vault of this version are left to be checked by the caller.
        """
        stored = StoredState.read(session)
        if head_before is not None:
            _check_age(session, stored, head_before)
        if stored != self.checked:
            self.check_seal(stored)
            self.checked, self.cached_state = stored, None
        if not schema_last or stored.row.schema_version != VERSION:
            _refuse_other_schema(self.schema_problems(session, stored.row.schema_version))
        if head_before is not None and head_before.sequence < stored.head.sequence:
            self.pinned_head.write(stored.head)
        return stored

    def first_key_problem(self, session: Session) -> str | None:
        """Which key is not the one of the ledger, as far as that can be read."""
        with suppress(AssertionError, ValueError, TypeError, KeyError):
            replayed = ReplayedState.of(tables.stream_ledger(session))
            return next(replayed.key_problems(self.all_keys), None)
        return None

    def check_seal(self, stored: StoredState) -> Keyring:
        """Check the seal; if it does not match, with keys that another process may have added meanwhile."""
        try:
            return stored.check_seal(self.all_keys)
        except VaultError:
            newer = Keyring.read(self.keys_path)
            if newer == self.all_keys or not newer.extends(self.all_keys):
                raise
            self.all_keys = newer
            return stored.check_seal(newer)

    def check_keys(self) -> None:
        """Refuse a key file that is gone, or has lost keys since this process read it."""
        if not Keyring.read(self.keys_path).extends(self.all_keys):
            raise VaultError(
                f"{self.keys_path} lacks keys that were in it: copy it from your backup of the keys"
            )

    def schema_problems(self, session: Session, version: int = VERSION) -> list[str]:
        """Where the tables are not as armnesia creates them; an unknown version is taken for this one."""
        layout = self.records.layout
        expected = TABLES.get((layout, version), TABLES[layout, VERSION])
        return self.database.schema_problems(session, expected)

    def refuse_foreign_schema(self, session: Session) -> int:
        """Refuse tables that no readable version of armnesia creates: a trigger, say, could copy rows.

        Returns the newest version that creates such tables.
        """
        versions = sorted(
            (version for layout, version in TABLES if layout == self.records.layout), reverse=True
        )
        problems = []
        for version in versions:
            found = self.schema_problems(session, version)
            if not found:
                return version
            problems += found
        raise VaultError(f"{problems[0]}; repair it by the database's own tools, then run the command again")

    def erasure_covers(self, kind: str) -> str:
        """The files that erasure is about, in words, for a ledger entry of this kind."""
        excludes = self.records.erasure_excludes if kind == "forget" else ""
        return self.database.erasure_covers + excludes

    def erase(self, head: Head, *, wait: bool = False) -> bool:
        """Make bytes deleted up to a head of the ledger leave the files if possible; whether they left."""
        if self.erased_at != head and self.database.erase(wait=wait):
            self.erased_at = head
        return self.erased_at == head


def keys_path_of(url: str, keys: str | Path | None) -> Path:
    """Where the keys are: as given, or where the database has them by default.

    Where a link leads, if it is one: the pinned head is beside the keys, and must be the same one by every
    name; and new keys are written into the file itself, not in the place of a link to it.
    """
    if keys is not None:
        refuse_null_characters(keys)
        if not Path(keys).name or os.path.isdir(keys):
            raise InvalidInputError(f"keys must be a file; got the folder {str(keys)!r}")
        path = Path(keys)
    else:
        path = database_module(url).default_keys_path(url)
    return Path(os.path.realpath(path)) if os.path.islink(path) else path


def pinned_head_of(keys_path: Path) -> PinnedHead:
    """The pinned head is kept beside the keys."""
    return PinnedHead(keys_path.with_name(keys_path.name + ".head"))


def open_vault(
    url: str,
    keys: str | Path | None = None,
    *,
    timeout: float = 30.0,
    accept: Accept = "intact",
) -> VaultConnection:
    """Connect to a vault; refuse what is none, is damaged or an old copy, or has other keys or versions."""
    if accept not in get_args(Accept):
        raise InvalidInputError(f"accept must be one of {', '.join(get_args(Accept))}; got {accept!r}")
    path = keys_path_of(url, keys)
    try:
        database = open_database(url, timeout=timeout)
    except DamagedDatabaseError as error:
        if path.is_file():
            raise
        raise DatabaseError(str(error)) from None  # without keys it may be anything
    with ExitStack() as undo:
        undo.callback(database.close)
        if not database.has_vault():
            raise database.no_vault()
        try:
            keyring = Keyring.read(path)
        except VaultError as error:
            if isinstance(error.__context__, FileNotFoundError):
                raise VaultError(
                    f"{path} does not exist: it has the vault's keys; give the file with --keys, or copy it"
                    " from your backup of the keys"
                ) from None
            raise
        path = path.absolute()  # the process may change its working folder
        pinned_head = pinned_head_of(path)
        head_before = None if accept == "any" else pinned_head.read()
        with database.reading() as session:
            identity = _identify(session, intact=accept == "intact")
            if identity is None:
                raise changed_outside() if accept == "intact" else _unknown(database)
            vault, version, records = identity
            check_identity(vault, version, keyring)
            connection = VaultConnection(database, keyring, path, pinned_head, records, accept)
            if accept == "intact":
                try:
                    connection.read_checked(session, head_before)
                except VaultError:
                    problem = connection.first_key_problem(session)
                    if problem is None:
                        raise
                    raise VaultError(problem) from None
        undo.pop_all()
    return connection


def _identify(session: Session, *, intact: bool) -> tuple[str, int, Records] | None:
    """The id and the version of a vault, and how it keeps its records; None if nothing says so.

    A state that was changed can still be verified and rebuilt by what the first ledger entry says; where an
    `intact` one is needed, its seal is checked next.
    """
    known: dict[str, Any] = {}
    with suppress(IndexError, ValueError, TypeError, KeyError):
        vault, version, text = tables.read_identity(session)[0]
        if type(vault) is str and type(version) is int:
            known = {"vault": vault, "version": version, "configuration": json.loads(text)}
    if not (known and intact):
        with suppress(ValueError, TypeError, KeyError):
            text, _ = tables.read_entry(session, 1) or ("", "")
            entry = json.loads(text)
            known = {"vault": entry["vault"], "version": VERSION} | known
            known["configuration"] = entry["configuration"]
    try:
        configuration = known["configuration"]
        records = records_of(configuration["mode"], keyed=bool(configuration.get("by")))
        return known["vault"], known["version"], records
    except (KeyError, TypeError, AttributeError):
        return None


def _unknown(database: Database) -> VaultError:
    """Nothing can be checked or rebuilt."""
    return database_error(
        database.location,
        "is damaged: neither its state nor its first ledger entry can be read; restore a backup",
    )


def _check_age(session: Session, stored: StoredState, head_before: Head) -> None:
    """Refuse a state that the pinned head does not lead to."""
    try:
        head = stored.head
    except (InvalidInputError, TypeError):
        raise changed_outside() from None
    if head.sequence < head_before.sequence:
        raise older_than(head_before)
    if head != head_before and not leads_to(
        tables.read_ledger_from(session, head_before.sequence), head_before, head
    ):
        raise rewritten_since(head_before)


def _refuse_other_schema(problems: Iterable[str]) -> None:
    """Refuse tables that are not as armnesia created them."""
    refuse_first(problems, "{}; nothing is read from such a vault: run armnesia verify")


def older_than(pinned: Head) -> VaultError:
    """The pinned entry is not in the ledger."""
    return VaultError(
        f"the vault is older than its pinned head (entry {pinned.sequence} is not there): people"
        " forgotten since may be in it; run armnesia restore"
    )


def rewritten_since(pinned: Head) -> VaultError:
    """The ledger has another entry than the pinned one."""
    return VaultError(
        f"the vault's ledger is not the one that was pinned (entry {pinned.sequence} differs):"
        " it was rewritten, or the keys' folder belongs to another vault; run armnesia verify"
    )
