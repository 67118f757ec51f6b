"""`Vault`: a log in a database that serves a decision and can forget people."""

import dataclasses
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, Self

from armnesia.core.errors import ArmnesiaError, InvalidInputError, PartlyErasedError, UnfinishedError
from armnesia.core.messages import system_failure, without_unchanged
from armnesia.core.progress import Progress
from armnesia.logs import IF_PRESENT
from armnesia.logs.columns import IfPresent
from armnesia.logs.conditions import Where
from armnesia.vault.arm_rules import NewRows
from armnesia.vault.configuration import Configuration
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.ledger.certificate import Certificate
from armnesia.vault.ledger.export_file import ExportFile
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.ledger.public_keys import PublicKeys
from armnesia.vault.ledger.signed_decisions import SignedDecisions
from armnesia.vault.operations.arms import add_arm, list_arms, retire_arm
from armnesia.vault.operations.back_up import back_up
from armnesia.vault.operations.certificates import answering_entry, certificates_of_each, save_certificates
from armnesia.vault.operations.compact import compact, estimate_compaction
from armnesia.vault.operations.copy import copy_vault
from armnesia.vault.operations.create import create_vault
from armnesia.vault.operations.decide import decide, decide_all, decide_signed
from armnesia.vault.operations.export import write_export
from armnesia.vault.operations.finish import finish
from armnesia.vault.operations.forget import forget, forget_many
from armnesia.vault.operations.identity import identify
from armnesia.vault.operations.ingest import UserColumn, ingest, open_named
from armnesia.vault.operations.ledger import read_ledger
from armnesia.vault.operations.policy import change_policy
from armnesia.vault.operations.preview import preview, preview_methods
from armnesia.vault.operations.readmit import readmit
from armnesia.vault.operations.rebuild import rebuild
from armnesia.vault.operations.restore import restore
from armnesia.vault.operations.rotate import rotate_digest_key, rotate_signing_key
from armnesia.vault.operations.status import pending_erasures, status_of, to_reissue
from armnesia.vault.operations.subject_requests import (
    add_subject_request,
    change_subject_request,
    erase_names,
    find_subject_request,
    list_subject_requests,
)
from armnesia.vault.operations.tokens import create_token, list_tokens, note_token_uses, revoke_token
from armnesia.vault.operations.verify import check_ledger, verify
from armnesia.vault.results.changes import ArmChange, OfferedArms, PolicyChange
from armnesia.vault.results.checks import LedgerCheck, LedgerEntries, Verification
from armnesia.vault.results.forgotten import Forgotten, Preview, Readmitted
from armnesia.vault.results.ingested import Ingested
from armnesia.vault.results.served import Served, ServedDecisions
from armnesia.vault.results.sources import ErasurePreview, SourceErasures
from armnesia.vault.results.status import PendingErasures, Status, VaultIdentity
from armnesia.vault.results.upkeep import (
    BackedUp,
    Compacted,
    CompactionEstimate,
    Copied,
    Exported,
    Finished,
    Rebuilt,
    Restored,
    Rotated,
    SavedCertificates,
)
from armnesia.vault.state.certificates import (
    certificate_of_entry,
    certificate_of_target,
    deletion_of_entry,
)
from armnesia.vault.state.connection import Accept, VaultConnection, open_vault
from armnesia.vault.state.request_options import ForgetRequest, RequestOptions
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.signing_keys import read_predecessors, read_public_keys
from armnesia.vault.state.similar_names import similar_held
from armnesia.vault.state.source_columns import may_have_ids
from armnesia.vault.subject_requests import SubjectRequest
from armnesia.vault.tokens import IssuedToken, Token, Tokens

DEFAULT_URL = "sqlite:///vault.db"


def _erasing() -> Any:
    """What erases at sources, which few vaults need."""
    from armnesia.vault.operations import erase  # noqa: PLC0415

    return erase


class Vault:
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

    def __init__(self, connection: VaultConnection) -> None:
        self._connection = connection

    @classmethod
    def create(
        cls,
        url: str = DEFAULT_URL,
        configuration: Configuration | None = None,
        *,
        keys: str | Path | None = None,
        timeout: float = 30.0,
        decisions: Iterable[Mapping[str, Any]] | None = None,
        successor_of: str | None = None,
        successor_keys: str | Path | None = None,
    ) -> Self:
        """Create a vault and its keys, readable by their owner only.

        With `decisions`, such as [{"country": "DE"}, {"country": "FR"}], a vault with key columns has these
        decisions from the beginning, and rows of others are refused.

        With `successor_of`, the address of another vault, whose keys are in the file `successor_keys`, the
        new vault succeeds it: with another configuration, database or keys, and without rows, but with its
        suppression list, so that whoever is forgotten there stays out.
        """
        if not isinstance(configuration, Configuration | None):
            raise InvalidInputError(
                f"configuration must be a Configuration; got a {type(configuration).__name__}"
            )
        configuration = configuration or Configuration(actions=None)
        if successor_of is None:
            if successor_keys is not None:
                raise InvalidInputError("successor_keys are the keys of another vault: name it, too")
            return cls(create_vault(url, configuration, keys, timeout=timeout, decisions=decisions))
        old = open_vault(successor_of, successor_keys, timeout=timeout)
        with closing(old.database):
            return cls(
                create_vault(url, configuration, keys, timeout=timeout, predecessor=old, decisions=decisions)
            )

    @classmethod
    def open(
        cls,
        url: str = DEFAULT_URL,
        *,
        keys: str | Path | None = None,
        timeout: float = 30.0,
        accept: Accept = "intact",
    ) -> Self:
        """Open a vault; refuse what is none, is damaged, has other keys, or is older than its pinned head.

        `accept="damaged"` also opens a damaged vault that is not older: for `rebuild`. `accept="any"` also
        opens an old or damaged copy: for `verify`, which then says what is wrong.
        """
        return cls(open_vault(url, keys, timeout=timeout, accept=accept))

    def ingest(
        self,
        source: Any,
        *,
        action: str | None = None,
        reward: str | None = None,
        user: str | IfPresent | None = IF_PRESENT,
        id: str | None = None,  # noqa: A002 (the usual name)
        table: str | None = None,
        where: Where | None = None,
        delimiter: str | None = None,
        no_user: bool = False,
        other_columns: bool = False,
        other_ids: bool = False,
        replace: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Ingested:
        """Add the rows of a file, a dataframe or a table, each once; see `armnesia.logs.open_source`.

        Columns that are not named are those that all earlier sources had; of the first one these are
        `action`, `reward` and, if there is one, `user`. For `user`, None stands for no user column. A source
        without one is refused, unless `no_user` states that the rows belong to no user; once people
        were forgotten, the column must be named, unless the vault has its people from a column `user`.
        Actions and rewards come from the same columns as before, unless `other_columns` states that others
        mean the same. Rows come with ids if earlier ones did, and without if they did not, unless `other_ids`
        states that none of them is there.
        With `replace`, rows whose action, reward or key was corrected at the source come in the place of the
        records with their ids; the ledger says how many.
        With `dry_run` the result says what would be done, and nothing is written.
        `where` are conditions that rows must satisfy to come in, such as "country = DE".

        An external vault counts the rows that are new at the source, and all sources again if rows that were
        counted have changed. A copy of a counted file elsewhere counts twice.
        """
        rows = open_named(
            self._connection,
            source,
            {"action": action, "reward": reward, "user": user, "id": id, "delimiter": delimiter},
            table=table,
            where=where,
            other_ids=other_ids,
            no_user=no_user,
        )
        users: UserColumn = "none" if no_user else "unstated" if user in (None, IF_PRESENT) else "named"
        return ingest(
            self._connection,
            rows,
            users=users,
            other_columns=other_columns,
            other_ids=other_ids,
            replaces=replace,
            dry_run=dry_run,
            progress=progress,
        )

    def decide(self, where: Mapping[str, Any] | None = None) -> Served:
        """The arm that is served now; it stays until records come in or are forgotten.

        In a vault with many decisions `where` names one of them, such as {"country": "DE", "age": 25}.
        """
        return decide(self._connection, where)

    def decisions(
        self, *, statistics: bool = False, after: int = 0, limit: int | None = None
    ) -> ServedDecisions:
        """The arms that all decisions serve, or at most `limit` of them after some.

        `statistics` are for the operator: changes reveal deletions.
        """
        return decide_all(self._connection, statistics=statistics, after=after, limit=limit)

    def signed_decisions(self) -> SignedDecisions:
        """The arms that all decisions serve, with the head of the ledger, under the signing key."""
        return decide_signed(self._connection)

    def arms(self, where: Mapping[str, Any] | None = None) -> OfferedArms:
        """Every arm, and in how many decisions it is offered; `where` gives the values of some keys."""
        return list_arms(self._connection, where)

    def add_arm(self, action: Hashable, where: Mapping[str, Any] | None = None) -> ArmChange:
        """Offer an arm from now on, in all decisions or in those whose keys have the values in `where`.

        A new arm starts without records, and one that was retired with those that it has.
        """
        return add_arm(self._connection, action, where)

    def retire_arm(
        self,
        action: Hashable,
        where: Mapping[str, Any] | None = None,
        *,
        new_rows: NewRows = "count",
    ) -> ArmChange:
        """Never serve an arm again, in all decisions or in those whose keys have the values in `where`.

        Its records stay and can be forgotten; `new_rows` says whether later rows of it are counted, or an
        ingest that has some is refused.
        """
        return retire_arm(self._connection, action, where, new_rows)

    def forget(
        self,
        users: Iterable[Any] | None = None,
        records: Iterable[Any] | None = None,
        *,
        unlearner: str | None = None,
        unlearner_options: Mapping[str, Any] | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        exactly: bool = False,
        erase_at_source: bool = False,
        purge: bool = False,
        ignore_retention: bool = False,
        search: bool = False,
    ) -> Forgotten:
        """Forget people, or single records by their id, permanently, with a certificate.

        A name of which the vault holds nothing is refused if it holds rows of a similar one, unless
        `exactly` states that the names are meant as they are. An external vault first counts sources again
        that have changed.
        With `erase_at_source`, `erase_at_sources` follows, and the certificate says how far that went.

        With `search`, the whole vault is read afterwards for what may be left of the names: on SQLite every
        byte of its file, on PostgreSQL all records and tallies. The certificate says so; if something is
        found, it is withheld, and an `UnfinishedError` raised. That takes as long as reading the vault, where
        a request takes milliseconds; so it is done only if asked for.
        """
        if not isinstance(search, bool):
            raise InvalidInputError(f"search must be True or False; got {search!r}")
        asked = RequestOptions(
            unlearner=unlearner,
            unlearner_options=unlearner_options,
            epsilon=epsilon,
            delta=delta,
            exactly=exactly,
        )
        target = ErasureTarget.of(users, records)
        if not erase_at_source:
            if purge or ignore_retention:
                raise InvalidInputError(
                    "purge and ignore_retention are about an erasure at the source: give erase_at_source, too"
                )
            return forget(self._connection, target, asked, search=search)
        _erasing().check_erasable(self._connection, purge=purge, ignore_retention=ignore_retention)
        done = forget(self._connection, target, asked, search=search)
        try:
            erased = self.erase_at_sources(purge=purge, ignore_retention=ignore_retention)
        except (ArmnesiaError, OSError) as error:
            what = system_failure(error) if isinstance(error, OSError) else str(error)
            reason = without_unchanged(what).removesuffix("; erase again")
            finish = "" if "armnesia erase" in reason else "; then run armnesia erase"
            message = (
                f"{reason}{finish}; the request itself is done, and armnesia certificate show prints its"
                " certificate"
            )
            if isinstance(error, PartlyErasedError):
                done = self._after_erasing(done, target, error.erasures)
                raise PartlyErasedError(message, error.erasures, done) from None
            raise UnfinishedError(message, done) from None
        return self._after_erasing(done, target, erased)

    def _after_erasing(self, done: Forgotten, target: ErasureTarget, erased: SourceErasures) -> Forgotten:
        """What a request did, with what an erasure at the sources has done since."""
        return dataclasses.replace(
            done,
            certificate=certificate_of_target(self._connection, target),
            head=self._state().head,
            deleted_at_source=erased.deleted,
        )

    def similar_held(
        self, users: Iterable[Any] | None = None, records: Iterable[Any] | None = None
    ) -> tuple[str, ...] | None:
        """Similar names that the vault holds rows of, each of which may be one of these people.

        None where they are not compared: in an external vault, and for ids or more than 100 people.
        """
        return similar_held(self._connection, ErasureTarget.of(users, records))

    @property
    def may_have_ids(self) -> bool:
        """Whether rows of this vault may have ids: not if all its sources came in without an id column."""
        with self._connection.reading() as transaction:
            return may_have_ids(transaction.session)

    def erase_at_sources(self, *, purge: bool = False, ignore_retention: bool = False) -> SourceErasures:
        """Delete the rows of everybody who is forgotten where the vault has counted others.

        Only in an external vault that was created with `may_erase_at_source`. `purge` also removes what still
        holds the rows, after the retention that a table declares, or at once with `ignore_retention`. After
        an interruption, call it again: it does the rest.
        """
        found: SourceErasures = _erasing().erase_at_sources(
            self._connection, purge=purge, ignore_retention=ignore_retention
        )
        return found

    def preview_erasure(self) -> ErasurePreview:
        """What `erase_at_sources` would delete: rows at each source; nothing is changed."""
        found: ErasurePreview = _erasing().preview_erasure(self._connection)
        return found

    def source_erasures(self) -> SourceErasures:
        """How far rows of forgotten people are erased at the sources, and what is due there."""
        found: SourceErasures = _erasing().source_erasures(self._connection)
        return found

    def forget_many(self, requests: Iterable[ForgetRequest]) -> list[Forgotten | ArmnesiaError]:
        """Answer several requests in one transaction: faster than one by one, with the same results.

        Each has its own ledger entry and certificate. One that is refused leaves nothing and does not harm
        the others: its error stands in its place. An error is raised only if nothing at all was changed; if
        the new head cannot be pinned, an `UnfinishedError` stands in the place of every one that is done.
        """
        return forget_many(self._connection, requests)

    def preview(
        self,
        users: Iterable[Any] | None = None,
        records: Iterable[Any] | None = None,
        *,
        unlearner: str | None = None,
        unlearner_options: Mapping[str, Any] | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        exactly: bool = False,
    ) -> Preview:
        """What `forget` would do, with probabilities; nothing is written. Do not store the result."""
        asked = RequestOptions(
            unlearner=unlearner,
            unlearner_options=unlearner_options,
            epsilon=epsilon,
            delta=delta,
            exactly=exactly,
        )
        return preview(self._connection, ErasureTarget.of(users, records), asked)

    def preview_methods(
        self,
        users: Iterable[Any] | None = None,
        records: Iterable[Any] | None = None,
        *,
        methods: Iterable[Mapping[str, Any]],
        exactly: bool = False,
    ) -> list[Preview | ArmnesiaError]:
        """As `preview`, by several methods; whoever is named is looked up once.

        A method has the arguments `unlearner`, `unlearner_options`, `epsilon` and `delta` of `preview`, or
        some of them. One that is refused has its error in its place.
        """
        asked = RequestOptions(exactly=exactly)
        each = [RequestOptions(**method) for method in methods]
        return preview_methods(self._connection, ErasureTarget.of(users, records), asked, each)

    def readmit(
        self, users: Iterable[Any] | None = None, records: Iterable[Any] | None = None, *, erase: bool = False
    ) -> Readmitted:
        """Let records of forgotten people in again; old ones come back only if a source brings them again."""
        return readmit(self._connection, ErasureTarget.of(users, records), erase=erase)

    def verify(
        self, head: Head | str | None = None, *, in_place: bool = False, progress: Progress | None = None
    ) -> Verification:
        """Recompute the statistics and check seal, ledger and certificates.

        An SQLite vault is read from a private copy, which does not hold back the erasure of people who are
        forgotten meanwhile; `in_place` reads the vault itself.
        """
        known = Head.parse(head) if isinstance(head, str) else head
        return verify(self._connection, known, progress, in_place=in_place)

    def status(self, *, scores: bool = False, where: Mapping[str, Any] | None = None) -> Status:
        """The state of the vault; `scores` are for the operator only: changes reveal what was deleted.

        In a vault with many decisions, `where` names the one whose scores are wanted.
        """
        return status_of(self._connection, scores=scores, where=where)

    def ledger(self, *, after: int = 0, most: int | None = None) -> LedgerEntries:
        """The entries of the ledger, from the first; or those after an entry, and only so many."""
        return read_ledger(self._connection, after, most)

    def check_ledger(self, head: Head | str) -> LedgerCheck:
        """Check the ledger alone against a head that was kept elsewhere."""
        return check_ledger(self._connection, Head.parse(head) if isinstance(head, str) else head)

    @property
    def head(self) -> Head:
        """The head of the ledger: kept elsewhere, it detects truncation and rewriting."""
        return self._state().head

    @property
    def pinned_head(self) -> Head | None:
        """The head of the ledger that this machine has seen last; None if it has seen none."""
        return self._connection.pinned_head.read()

    @property
    def pin_file(self) -> int | None:
        """The number of the file with the pinned head; another one: it was removed, and written anew."""
        return self._connection.pinned_head.file_number

    def open_pin(self) -> BinaryIO | None:
        """The file with the pinned head, opened for reading: while it is open, no other has its number."""
        path = self._connection.pinned_head.path
        return path.open("rb") if path.is_file() else None

    def check_keys(self) -> None:
        """Refuse a key file that is gone, or has lost keys since it was read."""
        self._connection.check_keys()

    def pending_erasures(self) -> PendingErasures:
        """How many erasures are pending, and since when, after trying again to complete them."""
        return pending_erasures(self._connection)

    @property
    def n_records(self) -> int:
        """How many records the vault holds."""
        with self._connection.reading() as transaction:
            return transaction.count_records()

    @property
    def configuration(self) -> Configuration:
        """The public configuration, fixed when the vault was created."""
        return self._state().configuration

    @property
    def has_key_columns(self) -> bool:
        """Whether rows belong to decisions by their keys: the vault was created with `by`."""
        return self._connection.records.layout.keyed

    def identity(self) -> VaultIdentity:
        """What its operator must know of a new vault: where it is, its keys, its head and configuration."""
        return identify(self._connection)

    @property
    def keys_path(self) -> Path:
        """The file of the keys."""
        return self._connection.keys_path

    def certificate(
        self, users: Iterable[Any] | None = None, records: Iterable[Any] | None = None
    ) -> Certificate:
        """The certificate of a request, opened; one that has to be signed, or signed again, is stored."""
        return certificate_of_target(self._connection, ErasureTarget.of(users, records))

    def answering_entry(
        self, users: Iterable[Any] | None = None, records: Iterable[Any] | None = None
    ) -> int | None:
        """The number of the ledger entry by which exactly this request is forgotten; None if it is not."""
        return answering_entry(self._connection, ErasureTarget.of(users, records))

    def certificate_of_entry(self, sequence: int) -> Certificate:
        """The certificate of a ledger entry, which names nobody; stored if it has to be signed."""
        return certificate_of_entry(self._connection, sequence)

    def deletion(self, sequence: int) -> dict[str, Any]:
        """The main facts of the deletion of a ledger entry, and whether erasure is complete by now."""
        return deletion_of_entry(self._connection, sequence)

    def certificates_to_reissue(self) -> tuple[int, ...]:
        """The ledger entries whose certificates `finish` signs again: their key was compromised."""
        return to_reissue(self._connection)

    def certificates(
        self, users: Iterable[Any] | None = None, records: Iterable[Any] | None = None
    ) -> Iterator[tuple[str, Certificate | None]]:
        """Each name with its own certificate, opened for it alone; None if it was never in a request.

        Certificates that have to be signed, or signed again, are stored.
        """
        return certificates_of_each(self._connection, ErasureTarget.of(users, records))

    def save_certificates(
        self,
        folder: str | Path,
        users: Iterable[Any] | None = None,
        records: Iterable[Any] | None = None,
    ) -> SavedCertificates:
        """Write the certificate of each name, opened for it alone, to a new folder that its owner can read.

        The files are numbered; `index.csv` in the folder says whose they are, and must not be handed out.
        """
        return save_certificates(self._connection, ErasureTarget.of(users, records), folder)

    def public_key(self, version: int | None = None) -> str:
        """The public key that certificates are verified with; by default the one in use."""
        in_use = self._state().signing_key  # which also loads keys that another process has made
        return self._connection.all_keys.public_key(in_use if version is None else version)

    def public_keys(self) -> PublicKeys:
        """The public keys used so far, and from which to which ledger entry each of them signed."""
        with self._connection.reading() as transaction:
            return read_public_keys(self._connection, transaction)

    def predecessors(self) -> tuple[PublicKeys, ...]:
        """The public keys of the vaults that this one succeeds, the latest last, as of their last heads."""
        with self._connection.reading() as transaction:
            return read_predecessors(transaction)

    def rotate_signing_key(self, *, compromised_since: int | None = None) -> Rotated:
        """Sign with a new key from now on.

        With `compromised_since`, certificates signed at this ledger entry or later must be issued again.
        """
        return rotate_signing_key(self._connection, compromised_since=compromised_since)

    def rotate_digest_key(self, *, progress: Progress | None = None) -> Rotated:
        """Wrap the digests of the suppression list in a new key; the vault can be used meanwhile."""
        return rotate_digest_key(self._connection, progress)

    def change_policy(self, **changes: Any) -> PolicyChange:
        """Change fields of the `Policy` from now on; the ledger records it."""
        return change_policy(self._connection, **changes)

    def finish(
        self,
        *,
        since: int = 1,
        folder: str | Path | None = None,
        progress: Progress | None = None,
        wait: bool = True,
    ) -> Finished:
        """Complete pending erasures, and sign their certificates again, from the ledger entry `since` on.

        Those that were signed again are written to the new `folder`, if one is given; they name nobody.
        On PostgreSQL deleted bytes leave the files by `compact` only: run it first. Unless `wait`, a reader
        that holds erasure back is not waited for.
        """
        return finish(self._connection, since=since, folder=folder, progress=progress, wait=wait)

    def compact(self) -> Compacted:
        """Make deleted bytes leave the database's files, however long it takes."""
        return compact(self._connection)

    def estimate_compaction(self) -> CompactionEstimate:
        """For how long `compact` would keep others waiting; a trial of less than a second."""
        return estimate_compaction(self._connection)

    def rebuild(
        self,
        *,
        without: Iterable[str] = (),
        unerased: bool = False,
        moved: tuple[str, str] | None = None,
        progress: Progress | None = None,
    ) -> Rebuilt:
        """Compute the statistics again from the rows or sources.

        `without` names sources of an external vault, as `status` does, that no longer exist. If rows may be
        erased at sources, one where rows of forgotten people are left is refused, unless `unerased` states
        that they stay. `moved` is a source and the place that it was moved to: only that is changed, and the
        source keeps its number, if the same files or rows are there.
        """
        dropped = tuple(dict.fromkeys(without))
        if moved is None:
            return rebuild(self._connection, dropped, progress, unerased=unerased)
        if dropped or unerased:
            raise InvalidInputError("moved (--moved) changes only where a source is; give it alone")
        from armnesia.vault.operations.move import move_source  # noqa: PLC0415 (few vaults need it)

        return move_source(self._connection, *moved)

    def export(self, path: str | Path, *, for_restore: bool = False) -> Exported:
        """Write what an auditor needs, without personal data; or what restoring a backup needs."""
        return write_export(self._connection, path, for_restore=for_restore)

    def back_up(self, path: str | Path) -> BackedUp:
        """Copy an SQLite vault into a new file; for PostgreSQL use its own tools, such as pg_dump."""
        return back_up(self._connection, path)

    def copy_to(
        self,
        url: str,
        *,
        keys: str | Path | None = None,
        timeout: float = 30.0,
        progress: Progress | None = None,
    ) -> Copied:
        """Copy the vault to an address where there is none yet, on either database, with the same keys.

        `keys` is the file of the copy's keys, by default where its database has them. Retire this vault
        afterwards: two vaults with the same head can diverge. If both use one file of keys, this one is
        refused, as older than its pinned head, once the copy has another ledger entry.
        """
        return copy_vault(self._connection, url, keys, timeout=timeout, progress=progress)

    @classmethod
    def restore(
        cls,
        url: str,
        export: str | Path,
        *,
        keys: str | Path | None = None,
        as_it_is: bool = False,
        moved: Sequence[tuple[str, str]] = (),
        timeout: float = 30.0,
    ) -> Restored:
        """Bring a vault restored from a backup up to date, by an export made for restoring.

        Everyone forgotten since is forgotten again before the vault opens. A copy that was changed by
        something other than armnesia is refused, unless it is accepted `as_it_is`. `moved` names sources of
        an external vault that are elsewhere than when the backup was made: pairs (old name, new place).
        """
        connection = open_vault(url, keys, timeout=timeout, accept="any")
        with closing(connection.database), ExportFile.opened(export, connection.all_keys) as opened:
            return restore(connection, opened, as_it_is=as_it_is, moved=moved)

    def create_token(self, role: str, *, name: str = "", days: int = 90) -> IssuedToken:
        """Make a token for the service; its text is in the result, and stored nowhere."""
        return create_token(self._connection, role, name, days)

    def tokens(self) -> Tokens:
        """The tokens of the service, also those that are revoked or expired."""
        return list_tokens(self._connection)

    def revoke_token(self, number: int) -> Token:
        """Refuse a token of the service from now on."""
        return revoke_token(self._connection, number)

    def note_token_uses(self, uses: Mapping[int, int]) -> None:
        """Note how often tokens, by their numbers, were used today."""
        note_token_uses(self._connection, uses)

    def add_subject_request(self, request: SubjectRequest, body: bytes) -> SubjectRequest:
        """Store a request of a controller, encrypted; the same one again is returned as it is now."""
        return add_subject_request(self._connection, request, body)

    def subject_request(self, id: str) -> SubjectRequest | None:  # noqa: A002 (the usual name)
        """The request of a controller with this id; None if there is none."""
        return find_subject_request(self._connection, id)

    def subject_requests(self, *, only_open: bool = False) -> tuple[SubjectRequest, ...]:
        """All requests of controllers, or those with something left to do, the oldest first."""
        return list_subject_requests(self._connection, only_open=only_open)

    def change_subject_request(self, before: SubjectRequest, after: SubjectRequest) -> SubjectRequest:
        """Put a request in the place of the one that was read; refuse if it has changed meanwhile."""
        return change_subject_request(self._connection, before, after)

    def erase_names(self, request: SubjectRequest) -> SubjectRequest:
        """Make the ciphertext of the names that a request had leave the files, and note in it if it did.

        On PostgreSQL only `compact` can, which notes it as well.
        """
        return erase_names(self._connection, request)

    def close(self) -> None:
        """Close the connection to the database."""
        self._connection.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _state(self) -> State:
        with self._connection.reading() as transaction:
            return transaction.state
