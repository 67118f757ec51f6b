"""Creating a vault: its tables, its keys, its journal and its first ledger entry, or nothing at all."""

import os
import uuid
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from armnesia.core.errors import InvalidInputError, VaultError, refuse_first
from armnesia.core.identifiers import UserType
from armnesia.core.randomness import secret_bytes
from armnesia.vault.configuration import Configuration
from armnesia.vault.db.opening import open_database
from armnesia.vault.db.schema import SuppressedRow
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.journal import Journal
from armnesia.vault.ledger.witness import Witness
from armnesia.vault.state.connection import keys_path_of
from armnesia.vault.state.decision_table import declared_keys, empty_decisions, put_decisions
from armnesia.vault.state.decisions import FIRST, decided
from armnesia.vault.state.replay import Replayed
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.transaction import Transaction


def create_vault(
    url: str,
    configuration: Configuration | None = None,
    keys: str | Path | None = None,
    *,
    timeout: float = 30.0,
    forgotten_from: str | Path | None = None,
    decisions: Iterable[Mapping[str, Any]] | None = None,
) -> None:
    """Create a vault and its keys; a failure before its commit leaves no file behind.

    With `forgotten_from`, the journal of another vault, whoever is forgotten there stays out of this one.
    With `decisions`, it has these and no others.

    >>> create_vault("sqlite:///no-such-folder/vault.db", Configuration(actions=("A", "B")))
    Traceback (most recent call last):
    armnesia.core.errors.VaultError: the file 'no-such-folder/vault.db' cannot be made: No such file
    or directory
    """
    if not isinstance(configuration, Configuration | None):
        raise InvalidInputError(
            f"configuration must be a Configuration; got a {type(configuration).__name__}"
        )
    configuration = configuration or Configuration(actions=None)
    if "" in (configuration.actions or ()):
        raise InvalidInputError("an action must have a name; got an empty one")
    for name, value in {"arms": configuration.arms, "decisions": configuration.declared_decisions}.items():
        if value:
            raise InvalidInputError(f"a new vault has no {name} yet; got {value!r}")
    # The one of a vault without key columns is there once its actions are known.
    declared: list[tuple[str, ...]] = [()] if configuration.actions and not configuration.by else []
    if decisions is not None:
        declared = declared_keys(configuration, decisions)
        configuration = configuration.with_declared_decisions(len(declared))
    path, vault = keys_path_of(url, keys), str(uuid.UUID(bytes=secret_bytes(16), version=4))
    keyring, suppressed = Keyring.create(vault), list[SuppressedRow]()
    if forgotten_from is not None:
        forgotten = _Forgotten.read(Path(forgotten_from))
        configuration = forgotten.named_as_there(configuration)
        keyring, suppressed = forgotten.keyring.of_another_vault(vault), forgotten.rows
    _create(url, path, configuration, keyring, suppressed, declared, timeout=timeout)


def _create(
    url: str,
    path: Path,
    configuration: Configuration,
    keyring: Keyring,
    suppressed: list[SuppressedRow],
    declared: list[tuple[str, ...]],
    *,
    timeout: float,
) -> None:
    """Create a vault with this suppression list and these decisions."""
    journal = Journal.beside(path)
    _refuse_existing(path, journal)
    database = open_database(url, create=True, timeout=timeout)
    with ExitStack() as undo:
        undo.callback(database.discard)
        if database.has_vault():
            raise VaultError(f"there is already a vault at {database.location!r}")
        keyring.save(path)
        undo.callback(path.unlink)
        with database.writing() as session:
            session.create_tables()
            state = State(vault=keyring.vault, configuration=configuration)
            transaction = Transaction(session, keyring, state)
            transaction.append("init", configuration=configuration, digest_key=keyring.digest_check)
            transaction.put(suppressed)
            new = decided(empty_decisions(state, dict(enumerate(declared, FIRST))), configuration)
            put_decisions(transaction, new)
            transaction.finish()
            journal.create(transaction.line)
            undo.callback(journal.path.unlink)
        Witness.beside(path).name("")  # of a vault that was here before
        undo.pop_all()  # from here on there is a vault, and it needs its keys
    database.close()


@dataclass(frozen=True)
class _Forgotten:
    """Whoever is forgotten in another vault, without any name: the new one has the same digest key.

    So they stay out in every spelling that is theirs in the old vault. Who was readmitted may come in.
    """

    keyring: Keyring
    user_type: UserType | None
    rows: list[SuppressedRow]

    @classmethod
    def read(cls, path: Path) -> "_Forgotten":
        """Read a journal, and the keys beside it."""
        journal = Journal(path)
        vault = journal.last().vault
        keys = path.with_name(path.name.removesuffix(".journal"))
        if not path.name.endswith(".journal") or not keys.is_file():
            raise VaultError(
                f"the keys of the vault of {path} must be beside it, in {keys.name}: without them nobody"
                " could be recognised"
            )
        keyring, replayed = Keyring.read(keys), Replayed.of_journal(journal.lines(), vault)
        refuse_first(replayed.problems, "the journal cannot be used: {}")
        refuse_first(replayed.key_problems(keyring), "the journal cannot be used: {}")
        rows = [
            SuppressedRow(own, kind, 1, None)
            for own, kind, _, ended in replayed.suppressed.values()
            if ended is None
        ]
        return cls(keyring, replayed.configuration.user_type, rows)

    def named_as_there(self, configuration: Configuration) -> Configuration:
        """The configuration with the old vault's user type; refuse another, whose spellings differ."""
        if self.user_type is None:
            return configuration
        if configuration.user_type not in (None, self.user_type):
            raise VaultError(
                f"people are named as {self.user_type} in the old vault, and in another type forgotten people"
                f" could come in under another spelling; user_type must be {self.user_type}, or not be given;"
                f" got {configuration.user_type}"
            )
        return replace(configuration, user_type=self.user_type)


def _refuse_existing(path: Path, journal: Journal) -> None:
    """Refuse a place where the keys or the journal of another vault are."""
    if path.exists():
        raise VaultError(
            f"there are keys at {str(path)!r} already: a vault is created once; if its database is lost, copy"
            " a backup back and run armnesia restore; for another vault, name a new address, or a new file"
            " with --keys; only if an init was interrupted, remove them and what else it has made"
        )
    if os.path.lexists(journal.path):
        raise VaultError(
            f"there is a journal at {str(journal.path)!r}, of a vault whose keys are not there: bring the"
            " keys back, or move the file away if that vault is gone"
        )
