"""`Vault`: a log in a database that serves a decision and can forget people."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Self

from armnesia.core.progress import Progress
from armnesia.vault import operations as do
from armnesia.vault.configuration import Configuration
from armnesia.vault.ledger.checkpoint import Checkpoint
from armnesia.vault.results import Restored
from armnesia.vault.state.connection import VaultConnection, signed_checkpoint

DEFAULT_URL = "sqlite:///vault.db"


class Vault(VaultConnection):
    """A log in a database that serves a decision and can forget people.

    Use it as a context manager, one per thread or process: any number of them may work on one vault. Every
    operation returns a frozen result with `to_dict()`.

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

    @classmethod
    def create(
        cls,
        url: str = DEFAULT_URL,
        configuration: Configuration | None = None,
        *,
        keys: str | Path | None = None,
        timeout: float = 30.0,
        decisions: Iterable[Mapping[str, Any]] | None = None,
        forgotten_from: str | Path | None = None,
    ) -> Self:
        """Create a vault, its keys and its journal, readable by their owner only.

        With `decisions`, such as [{"country": "DE"}, {"country": "FR"}], a vault with key columns has these
        decisions from the beginning, and rows of others are refused.

        With `forgotten_from`, the journal of another vault with its keys beside it, whoever is forgotten
        there stays out of this vault, too.
        """
        do.create.create_vault(
            url, configuration, keys, timeout=timeout, forgotten_from=forgotten_from, decisions=decisions
        )
        return cls.connect(url, keys, timeout=timeout)

    @classmethod
    def open(
        cls,
        url: str = DEFAULT_URL,
        *,
        keys: str | Path | None = None,
        timeout: float = 30.0,
        checked: bool = True,
    ) -> Self:
        """Open a vault; refuse what is none, is damaged, has other keys, or is older than its journal.

        Unless `checked`, an old or damaged copy is opened, too: for `verify`, which then says what is wrong.
        """
        return cls.connect(url, keys, timeout=timeout, checked=checked)

    @classmethod
    def restore(
        cls,
        url: str = DEFAULT_URL,
        journal: str | Path | None = None,
        *,
        keys: str | Path | None = None,
        as_it_is: bool = False,
        without_journal: bool = False,
        moved: Sequence[tuple[str, str]] = (),
        without: Iterable[str] = (),
        timeout: float = 30.0,
        progress: Progress | None = None,
    ) -> Restored:
        """Bring a vault that was restored from a backup in line with its journal, or with a copy of it.

        Everyone forgotten since is forgotten again before the vault opens. One that something else has
        changed is refused, unless it is accepted `as_it_is`: then it is repaired as far as that is possible.
        Of an external vault, `moved` names sources that are elsewhere now (old name, new place), and
        `without` those that no longer exist. `without_journal` first begins a new journal where the old
        one is lost.
        """
        connection = cls.connect(url, keys, timeout=timeout, checked=False)
        with closing(connection.database):
            if without_journal:
                do.restore.begin_journal(connection)
            return do.restore.restore(
                connection,
                journal,
                as_it_is=as_it_is,
                moved=moved,
                without=tuple(without),
                progress=progress,
            )

    ingest = do.ingest.ingest
    decide = do.decide.decide
    decisions = do.decide.decide_all
    signed_decisions = do.decide.decide_signed
    forget = do.forget.forget
    forget_many = do.forget.forget_many
    preview = do.preview.preview
    preview_methods = do.preview.preview_methods
    readmit = do.readmit.readmit
    check_erasable = do.erase.check_erasable
    erase_at_sources = do.erase.erase_at_sources
    preview_erasure = do.erase.preview_erasure
    source_erasures = do.erase.source_erasures
    arms = do.arms.list_arms
    add_arm = do.arms.add_arm
    retire_arm = do.arms.retire_arm
    change_policy = do.policy.change_policy
    certificate = do.certificates.certificate
    certificates = do.certificates.certificates_of_each
    save_certificates = do.certificates.save_certificates
    entries_of_case = do.certificates.entries_of_case
    verify = do.verify.verify
    status = do.status.status_of
    identity = do.status.identify
    public_keys = do.status.read_public_keys
    ledger = do.ledger.read_ledger
    checkpoint = do.ledger.checkpoint
    check_ledger = do.ledger.check_ledger
    export = do.upkeep.write_export
    back_up = do.upkeep.back_up
    compact = do.upkeep.compact
    rotate_signing_key = do.rotate.rotate_signing_key
    create_token = do.tokens.create_token
    tokens = do.tokens.list_tokens
    revoke_token = do.tokens.revoke_token
    note_token_uses = do.tokens.note_token_uses
    add_subject_request = do.subject_requests.add_subject_request
    subject_request = do.subject_requests.find_subject_request
    subject_requests = do.subject_requests.list_subject_requests
    change_subject_request = do.subject_requests.change_subject_request

    def name_witness(self, to: str) -> None:
        """Send every checkpoint to this file or URL from now on; an empty text ends it."""
        self.witness.name(to)
        with self.reading() as transaction:
            self.witness.tell(transaction.state.head.size, lambda: str(signed_checkpoint(transaction)))

    def public_key(self, version: int | None = None) -> str:
        """The public key that certificates are verified with; by default the one in use."""
        with self.reading() as transaction:  # which also loads keys that another process has made
            in_use = transaction.state.signing_key
        return self.all_keys.public_key(in_use if version is None else version)

    @property
    def head(self) -> Checkpoint:
        """The size and the root of the ledger."""
        with self.reading() as transaction:
            return transaction.state.head

    @property
    def configuration(self) -> Configuration:
        """The public configuration."""
        with self.reading() as transaction:
            return transaction.state.configuration

    @property
    def n_records(self) -> int:
        """How many records the vault holds."""
        with self.reading() as transaction:
            return self.records.count(transaction.session)

    def close(self) -> None:
        """Close the connection to the database."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
