"""`Vault`: the persistent system that forgets people."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Self

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.progress import Progress
from armnesia.logs import open_source
from armnesia.vault.configuration import Configuration, Policy
from armnesia.vault.ledger.certificate import Certificate
from armnesia.vault.ledger.ledger import Entry, Head
from armnesia.vault.operations import readmit, rebuild, rotate
from armnesia.vault.operations.certificates import certificate_of, stored_certificate
from armnesia.vault.operations.create import create_vault
from armnesia.vault.operations.export import read_export, write_export
from armnesia.vault.operations.forget import Asked, Forgotten, Preview, forget, preview
from armnesia.vault.operations.ingest import Ingested, ingest
from armnesia.vault.operations.restore import restore
from armnesia.vault.operations.status import Served, Status, status_of
from armnesia.vault.operations.upgrade import upgrade
from armnesia.vault.operations.verify import Verification, check_ledger, verify
from armnesia.vault.state.connection import Opened, open_vault
from armnesia.vault.state.records import Wanted
from armnesia.vault.state.sealed_state import State
from armnesia.vault.storage.sqlite import SqliteDatabase

DEFAULT_URL = "sqlite:///vault.db"


class Vault:
    """A log that serves a decision and can forget people, kept in a database.

    Use it as a context manager, one for each thread or process: any number of them may work on one vault.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> url = f"sqlite:///{folder.name}/vault.db"
    >>> vault = Vault.create(url, Configuration(actions=("A", "B")))
    >>> log = {"arm": ["A", "A", "B"], "click": [1, 1, 0], "who": ["ann", "bob", "ann"]}
    >>> vault.ingest(log, action="arm", reward="click", user="who").added
    3
    >>> vault.decide().action
    'A'
    >>> done = vault.forget(users=["ann"])
    >>> done.counts, done.certificate.verify(vault.public_key())
    ({'A': 1, 'B': 1}, [])
    >>> vault.forget(users=["ann"]).repeated, vault.verify().holds
    (True, True)
    >>> vault.close()
    >>> folder.cleanup()
    """

    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    @classmethod
    def create(
        cls,
        url: str = DEFAULT_URL,
        configuration: Configuration | None = None,
        *,
        keys: str | Path | None = None,
        timeout: float = 30.0,
    ) -> Self:
        """Make a new vault and its keys, readable by their owner only."""
        if not isinstance(configuration, Configuration | None):
            raise InvalidInputError(
                f"configuration must be a Configuration; got a {type(configuration).__name__}"
            )
        return cls(create_vault(url, configuration or Configuration(actions=None), keys, timeout=timeout))

    @classmethod
    def open(cls, url: str = DEFAULT_URL, *, keys: str | Path | None = None, timeout: float = 30.0) -> Self:
        """Open a vault; refused if it is none, has other keys, or is older than its pinned head."""
        return cls(open_vault(url, keys, timeout=timeout))

    def ingest(
        self,
        source: Any,
        *,
        action: str = "action",
        reward: str = "reward",
        user: str | None = None,
        id: str | None = None,  # noqa: A002 (the name that people use for it)
        table: str | None = None,
        nobody: bool = False,
        batch_rows: int | None = None,
        progress: Progress | None = None,
    ) -> Ingested:
        """Take in the rows of a file, a dataframe or a table, each once; see `armnesia.logs.open_source`.

        Once people were forgotten, rows without a `user` column are refused, unless they are `nobody`'s.
        """
        rows = open_source(source, action=action, reward=reward, user=user, id=id, table=table)
        return ingest(self._opened, rows, nobody=nobody, batch_rows=batch_rows, progress=progress)

    def decide(self) -> Served:
        """The arm that is served now; it stays until records come in or are forgotten."""
        state = self._state()
        return Served(state.served_action, state.served_by, state.head)

    def forget(
        self,
        users: Iterable[Any] | None = None,
        records: Iterable[Any] | None = None,
        *,
        unlearner: str | None = None,
        options: Mapping[str, Any] | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
    ) -> Forgotten:
        """Forget people, or single records by their id: for good, and certified."""
        asked = Asked(unlearner, options, epsilon, delta)
        return forget(self._opened, Wanted.of(users, records), asked)

    def preview(
        self,
        users: Iterable[Any] | None = None,
        records: Iterable[Any] | None = None,
        *,
        unlearner: str | None = None,
        options: Mapping[str, Any] | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
    ) -> Preview:
        """What `forget` would do, with probabilities; nothing is written. Do not keep what it tells."""
        asked = Asked(unlearner, options, epsilon, delta)
        return preview(self._opened, Wanted.of(users, records), asked)

    def readmit(
        self, users: Iterable[Any] | None = None, records: Iterable[Any] | None = None, *, erase: bool = False
    ) -> int:
        """Let new records of forgotten people in again; nothing that was deleted comes back."""
        return readmit.readmit(self._opened, Wanted.of(users, records), erase=erase)

    def verify(self, head: Head | str | None = None, *, progress: Progress | None = None) -> Verification:
        """Recompute the statistics and check seal, ledger and certificates."""
        return verify(self._opened, Head.parse(head) if isinstance(head, str) else head, progress)

    def status(self, *, scores: bool = False) -> Status:
        """How the vault stands; `scores` are for the operator only: published before and after, they undo."""
        return status_of(self._opened, scores=scores)

    def ledger(self) -> list[Entry]:
        """The entries of the ledger, from the first."""
        with self._opened.reading() as session:
            texts = session.query("SELECT entry FROM ledger ORDER BY sequence")
        return [Entry.from_text(text) for (text,) in texts]

    def check_ledger(self, head: Head | str) -> list[str]:
        """Check the ledger alone against a head that was kept elsewhere; one sentence for each problem."""
        return check_ledger(self._opened, Head.parse(head) if isinstance(head, str) else head)

    @property
    def head(self) -> Head:
        """The head of the ledger: keep it elsewhere, and truncation and rewriting are noticed."""
        return self._state().head

    @property
    def configuration(self) -> Configuration:
        """What the vault was told at its set-up."""
        return self._state().configuration

    def certificate(
        self,
        users: Iterable[Any] | None = None,
        records: Iterable[Any] | None = None,
        *,
        sequence: int | None = None,
    ) -> Certificate:
        """The certificate of a request, opened; or of an entry of the ledger, which names nobody."""
        if sequence is not None:
            return stored_certificate(self._opened, sequence)
        return certificate_of(self._opened, Wanted.of(users, records))

    def public_key(self, version: int | None = None) -> str:
        """The public key that certificates are verified with; the one in use if no version is given."""
        in_use = self._state().signing_key  # which also reads keys that were made meanwhile
        return self._opened.keyring.public_key(in_use if version is None else version)

    def public_keys(self) -> list[str]:
        """The public keys of all versions in use so far."""
        in_use = self._state().signing_key
        return [self._opened.keyring.public_key(version) for version in range(1, in_use + 1)]

    def rotate_signing_key(self) -> int:
        """Sign with a new key; the version it has."""
        return rotate.rotate_signing_key(self._opened)

    def rotate_digest_key(self) -> int:
        """Re-key the suppression list in one transaction; the version of the new key."""
        return rotate.rotate_digest_key(self._opened)

    def change_policy(self, policy: Policy) -> None:
        """Allow more or less from now on; the ledger says so."""
        rebuild.change_policy(self._opened, policy)

    def compact(self) -> bool:
        """Make deleted bytes leave the database's files, which may take long; whether they are gone."""
        return rebuild.compact(self._opened)

    def rebuild(self, *, without: Iterable[str] = (), progress: Progress | None = None) -> bool:
        """Compute the statistics anew from the rows or sources; whether anything had to be changed.

        `without` names sources of an external vault, as `status` does, that are gone for good.
        """
        return rebuild.rebuild(self._opened, tuple(dict.fromkeys(without)), progress)

    def export(self, path: str | Path, *, for_restore: bool = False) -> dict[str, Any]:
        """Write what an auditor needs, without personal data; or what restoring a backup needs."""
        return write_export(self._opened, path, for_restore=for_restore)

    def back_up(self, path: str | Path) -> None:
        """Copy an SQLite vault into a new file; for PostgreSQL use its own tools, such as pg_dump."""
        database = self._opened.database
        if not isinstance(database, SqliteDatabase):
            raise VaultError("a vault on PostgreSQL is backed up by its own tools, such as pg_dump")
        database.back_up(str(path))

    @classmethod
    def restore(
        cls,
        url: str,
        export: str | Path,
        *,
        keys: str | Path | None = None,
        as_it_is: bool = False,
        timeout: float = 30.0,
    ) -> int:
        """Bring a vault that was put back from a backup up to date, by an export made for restoring.

        Everyone forgotten since is forgotten again before the vault opens; how many entries were replayed.
        A copy that was changed by something other than armnesia is refused, unless it is to be taken
        `as_it_is`.
        """
        opened = open_vault(url, keys, timeout=timeout, check_pin=False)
        with closing(opened.database):
            return restore(opened, read_export(export, opened.keyring), as_it_is=as_it_is)

    @classmethod
    def upgrade(cls, url: str, *, keys: str | Path | None = None, timeout: float = 30.0) -> tuple[int, int]:
        """Bring an older vault to this version; from which version, to which.

        Also a backup that was put back: it still opens only after `restore`.
        """
        opened = open_vault(url, keys, timeout=timeout, check_pin=False, check_schema=False)
        with closing(opened.database):
            return upgrade(opened)

    def close(self) -> None:
        """Let go of the database."""
        self._opened.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _state(self) -> State:
        with self._opened.reading() as session:
            return self._opened.load(session)
