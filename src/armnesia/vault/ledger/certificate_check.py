"""Whether the key of a certificate may have signed it: by a list of keys, a ledger and a head.

A certificate says at which head of the ledger it was signed (`issued_at_head`). That entry must lie in the
range of its key, so that a retired key signs nothing new. Whoever holds a retired key can name an entry of
its range, but then the ledger decides: the certificate's entry and the one it was issued at must be in it,
the entry fixes the words of its certificate (`terms`), and the entry that retired the key says how far
erasure was complete. So only statements that the vault made itself can be signed again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from armnesia.core.errors import InvalidInputError
from armnesia.vault.keys.canonical_json import parse_time
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.ledger.ledger_copy import LedgerCopy
from armnesia.vault.ledger.public_keys import SigningKey, TrustedKeys
from armnesia.vault.ledger.source_claim import source_claim

CLOCK_TOLERANCE = timedelta(days=1)
"""By how much a date may be later than the end of its key: clocks differ, and are set."""

INTEGRITY_ONLY = (
    "No public key was given: the certificate was checked with the key inside it, which shows that it is"
    " unchanged, but not who signed it."
)
KEYS_WITHOUT_RANGES = (
    "The public keys were given without the entries that they signed, so a retired key counts like the one in"
    " use: give the list that armnesia public-key --json prints, or the ledger."
)
HEAD_ALONE = (
    "A head alone shows how long the ledger is, and the hash of its last entry. It does not show that an"
    " earlier entry is in the ledger, nor which key was in use: give the ledger as well."
)
OTHER_LAYOUT = (
    "The file is not laid out as armnesia writes it; what it says was checked, as the signature is on the"
    " canonical form of it."
)


class Undecided(str):
    """A problem that another file may solve: it does not speak against the certificate itself."""

    remedy: ClassVar[str]
    """With what it cannot be decided, and what to get instead."""


class OldExport(Undecided):
    """A problem that a newer export may solve: the ledger given ends before what it is asked for."""

    remedy = "with this export: get a newer one"


class LedgerOfSuccessor(Undecided):
    """A problem that the export of another vault may solve: the ledger given is that of a successor."""

    remedy = "with this export: it is that of another vault"


class OldKeyList(Undecided):
    """A problem that a newer list of public keys may solve: it would confirm the ledger given, or not."""

    remedy = "with these public keys: get the newest list, or a head that was kept elsewhere"


@dataclass(frozen=True)
class CertificateCheck:
    """What was found about a certificate: each problem is one sentence; notes say what was not checked.

    Nothing speaks against a certificate that is only not `decided`, and nothing shows that it is valid.
    """

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    signer_checked: bool = False
    """Whether public keys were given."""
    ledger_checked: bool = False
    """Whether a ledger was given."""
    certificate: Mapping[str, Any] | None = None
    """The main facts of the certificate (`Certificate.summary`); None if it lacks a part that is required."""

    @property
    def valid(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    @property
    def decided(self) -> bool:
        """False if the only problem is that the ledger or the list of keys given is too old, or another's."""
        return not self.problems or any(not isinstance(problem, Undecided) for problem in self.problems)

    def to_dict(self) -> dict[str, Any]:
        """All fields, `valid` and `decided`."""
        return {
            "valid": self.valid,
            "decided": self.decided,
            "problems": list(self.problems),
            "notes": list(self.notes),
            "signer_checked": self.signer_checked,
            "ledger_checked": self.ledger_checked,
            "certificate": None if self.certificate is None else dict(self.certificate),
        }


@dataclass(frozen=True)
class Issue:
    """How a certificate was issued, as it says itself."""

    vault: str
    entry: Head
    entry_time: str
    terms_fixed: bool
    """Whether the ledger entry fixes the words of the certificate."""
    issued_at: Head | None
    """The head of the ledger when it was signed; certificates of 0.1.0 do not say."""
    issued: Any
    erasure: str
    version: Any
    public: str
    searched: str | None = None
    """What it says was searched."""
    source: Mapping[str, Any] | None = None
    """What it says of the sources of an external vault."""
    entry_fields: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "Issue":
        """From the body of a certificate that is well formed."""
        at, key, entry = body.get("issued_at_head"), body["signing_key"], body["entry"]
        return cls(
            vault=body["vault"],
            entry=Head(body["sequence"], body["entry_hash"]),
            entry_time=entry["time"],
            terms_fixed="terms" in entry,
            issued_at=None if at is None else Head.parse(at),
            issued=body.get("issued"),
            erasure=body["erasure"]["state"],
            version=key.get("version"),
            public=key["public"],
            searched=body["erasure"].get("searched"),
            source=body.get("source"),
            entry_fields=entry,
        )

    @property
    def latest(self) -> int:
        """The number of the latest ledger entry that it names."""
        return self.entry.sequence if self.issued_at is None else self.issued_at.sequence

    @property
    def named_heads(self) -> dict[Head, str]:
        """The ledger entries that it names, and what it says of each."""
        issued_at = {} if self.issued_at is None else {self.issued_at: "was issued at"}
        return issued_at | {self.entry: "is about"}

    def source_problems(self, entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        """Whether it says of the sources what these entries, of the whole ledger, say."""
        known = [each for each in entries if each["sequence"] <= self.latest]
        try:
            agrees = self.source == source_claim(self.entry_fields, known)
        except (LookupError, TypeError, ValueError):  # an entry that armnesia does not write
            agrees = False
        if not agrees:
            yield "what the certificate says of the source is not what the ledger says"

    def later_claims(self, entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        """Whether later entries of the ledger, which agrees with it, say more of the sources."""
        try:
            now = source_claim(self.entry_fields, entries)
        except (LookupError, TypeError, ValueError):  # an entry that armnesia does not write
            return
        if now is not None and now != self.source:
            yield (
                f"The ledger says more of the sources by now ({now['state']}): ask for a new certificate"
                " (armnesia certificate show)."
            )

    def range_problems(self, key: SigningKey) -> Iterator[str]:
        """Where it contradicts the range of its key."""
        if self.version != key.version:
            yield f"the certificate says that its signing key is {self.version!r}; it is {key.version}"
        last = self.latest if key.last_entry is None else key.last_entry
        if self.issued_at is not None and not key.first_entry <= self.issued_at.sequence <= last:
            yield (
                f"the certificate was issued at entry {self.issued_at.sequence} of the ledger, but its key"
                f" {key.version} signed {key.range_words}"
            )
        elif self.entry.sequence > last:
            yield (
                f"the certificate's entry {self.entry.sequence} is later than its key {key.version}, which"
                f" signed {key.range_words}"
            )

    def erasure_problems(self, key: SigningKey) -> Iterator[str]:
        """Whether it says more of erasure than the entry that retired its key."""
        through = key.erased_through
        if through is not None and self.erasure == "complete" and self.entry.sequence > through:
            yield (
                "the certificate says that erasure is complete, but when its key"
                f" {key.version} was retired, it was complete up to entry {through} only"
            )

    def date_problems(self, key: SigningKey) -> Iterator[str]:
        """Whether it, or its entry, is dated after its key was retired."""
        for what, time in (("certificate", self.issued), ("certificate's entry", self.entry_time)):
            try:
                late = key.until is not None and parse_time(time) > parse_time(key.until) + CLOCK_TOLERANCE
            except (InvalidInputError, OverflowError):
                yield f"the {what} has no valid date: {time!r}"
            else:
                if late:
                    yield f"the {what} is dated {time}, but its key {key.version} was retired at {key.until}"

    def key_problems(self, key: SigningKey, *, with_ledger: bool) -> Iterator[str]:
        """Everything that its key has against it."""
        outside = list(self.range_problems(key))
        yield from outside or self.erasure_problems(key)
        yield from self.date_problems(key)
        yield from self.reissue_problems(key, with_ledger=with_ledger)

    def reissue_problems(self, key: SigningKey, *, with_ledger: bool) -> Iterator[str]:
        """Why it must be issued again, if its key was compromised.

        Whoever stole the key can name any entry of its range. So an issue before the theft counts only if
        the ledger is there to check the entry, and the entry fixes the words.
        """
        since = key.compromised_since
        if since is None:
            return
        again = (
            f"key {key.version} was compromised: certificates that it signed since entry {since} must be"
            " issued again; ask the operator for it (armnesia certificate show)"
        )
        if self.issued_at is None or self.issued_at.sequence >= since:
            yield again
        elif not self.terms_fixed:
            yield f"{again}; the ledger does not fix the words of this one, which was signed before"
        elif not with_ledger:
            yield f"{again}; that this one was signed before can be checked with the ledger only"


def check_issue(
    body: Mapping[str, Any], keys: TrustedKeys, ledger: LedgerCopy | None, head: Head | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Check how a certificate was issued, whose body is well formed and signed with one of the keys.

    Returns the problems and the notes of a `CertificateCheck`.
    """
    issue = Issue.of(body)
    problems = list(vault_problems(issue.vault, keys, ledger))
    has_ledger = ledger is not None and ledger.keys.vault == issue.vault
    problems += _list_problems(issue, keys, with_ledger=has_ledger)
    listed = keys.as_of
    if head is not None and listed is not None and listed.sequence == head.sequence and listed != head:
        problems.append(
            f"the list of public keys and the head given disagree about entry {head.sequence} of the ledger:"
            " one of them is of another ledger"
        )
    if ledger is not None:
        compare = _ledger_problems if has_ledger else _successor_problems
        problems += compare(issue, keys, ledger, head)
    elif head is not None:
        problems += _head_problems(issue, head)
    notes = [] if problems else _notes(issue, keys, ledger, head)
    return tuple(dict.fromkeys(problems)), tuple(notes)


def _list_problems(issue: Issue, keys: TrustedKeys, *, with_ledger: bool) -> Iterator[str]:
    key = keys.named(issue.public)
    if key is not None and keys.of_vault in {None, issue.vault}:
        yield from issue.key_problems(key, with_ledger=with_ledger)


def _ledger_problems(issue: Issue, keys: TrustedKeys, ledger: LedgerCopy, head: Head | None) -> Iterator[str]:
    if head is not None and not ledger.has(head):
        yield f"the ledger given does not have the head that was kept, {head}"
    for named, verb in issue.named_heads.items():
        if named.sequence > len(ledger.hashes):
            yield OldExport(
                f"the ledger given ends at entry {ledger.head.sequence}, before entry {named.sequence}, which"
                f" the certificate {verb}: get a newer export"
            )
        elif not ledger.has(named):
            yield f"entry {named.sequence}, which the certificate {verb}, is not that of the ledger given"
    if issue.latest <= len(ledger.hashes):
        yield from issue.source_problems(ledger.erasures)
    missing = [public for public in keys if ledger.keys.named(public) is None]
    if missing:
        yield _missing_key(missing[0], keys, ledger)
        return
    yield from _disagreements(keys, ledger)
    key = ledger.keys.named(issue.public)
    assert key is not None  # it is among the keys given
    yield from issue.key_problems(key, with_ledger=True)
    if key.retired and not _is_confirmed(issue, key, keys, ledger, head):
        yield OldKeyList(
            f"the certificate is signed with key {key.version}, which is retired, and whoever holds it can"
            " make another ledger: give the newest list of public keys, or a head of entry"
            f" {issue.latest} or later that was kept elsewhere"
        )


def _successor_problems(
    issue: Issue, keys: TrustedKeys, ledger: LedgerCopy, head: Head | None
) -> Iterator[str]:
    """What the ledger of a successor has against it, by the keys that it lists of the certificate's vault."""
    before = next((each for each in ledger.predecessors if each.vault == issue.vault), None)
    if before is None:
        return
    for named, verb in issue.named_heads.items():
        if named.sequence == before.head.sequence and named != before.head:
            yield f"entry {named.sequence}, which the certificate {verb}, is not that of the ledger given"
    for listed in keys.ranges:
        own = before.named(listed.public)
        same = own is not None and (own.version, own.first_entry) == (listed.version, listed.first_entry)
        if not same and listed.first_entry <= before.head.sequence:
            yield f"the list of public keys and the ledger given disagree about key {listed.version}"
    key = before.named(issue.public)
    if key is not None:
        yield from issue.key_problems(key, with_ledger=False)
    if head is not None:
        yield from _head_problems(issue, head)


def vault_problems(vault: str, keys: TrustedKeys, ledger: LedgerCopy | None) -> Iterator[str]:
    """Whether keys or ledger are those of another vault than the certificate's; if so, which are needed."""
    if keys.of_vault not in {None, vault}:
        yield (
            f"the list of public keys is that of another vault, {keys.of_vault}; it must be that of {vault}:"
            " if that was succeeded, armnesia public-key --of VAULT --json of the successor prints it"
        )
    if ledger is None or ledger.keys.vault == vault:
        return
    given, before = ledger.keys.vault, {each.vault: each.head for each in ledger.predecessors}
    if vault in before:
        # Without the list of that vault nothing says which keys it had: then the certificate is refused.
        kind = LedgerOfSuccessor if keys.of_vault == vault else str
        yield kind(
            f"the ledger given is that of the vault {given}, a successor of the certificate's vault {vault}:"
            " give an export of that vault itself, which has the entry; when it was succeeded, its head was"
            f" {before[vault]}"
        )
    else:
        yield f"the ledger given is that of another vault, {given}; it must be that of {vault}"


def _missing_key(public: str, keys: TrustedKeys, ledger: LedgerCopy) -> str:
    """A key that the ledger does not name: the list says whether it is newer than the ledger."""
    listed = keys.named(public)
    if listed is not None and listed.first_entry > ledger.head.sequence:
        return OldExport(
            f"the ledger given ends at entry {ledger.head.sequence}, before entry {listed.first_entry}, which"
            f" put key {listed.version} of the list in use: get a newer export"
        )
    return (
        f"the ledger given does not name the public key {public}: it is older than the key, or it is another"
        " ledger"
    )


def _disagreements(keys: TrustedKeys, ledger: LedgerCopy) -> Iterator[str]:
    """Where a published list and the ledger contradict each other."""
    for listed in keys.ranges:
        own = ledger.keys.named(listed.public)
        if own is None or (own.version, own.first_entry) != (listed.version, listed.first_entry):
            yield f"the list of public keys and the ledger given disagree about key {listed.version}"


def _is_confirmed(
    issue: Issue, key: SigningKey, keys: TrustedKeys, ledger: LedgerCopy, head: Head | None
) -> bool:
    """Whether the ledger, up to what the certificate names, is confirmed by more than its retired key."""
    if head is not None and head.sequence >= issue.latest:
        return True
    newest = [known for known in ledger.keys.keys if known.public in keys][-1]
    return newest.version > key.version and newest.public in ledger.confirmed


def _head_problems(issue: Issue, head: Head) -> Iterator[str]:
    """What a head kept elsewhere has against a certificate, without the ledger."""
    if issue.entry.sequence > head.sequence:
        yield (
            f"the certificate's entry {issue.entry.sequence} is later than the head given, which is that of"
            f" entry {head.sequence}: get a newer head"
        )
    for named, verb in issue.named_heads.items():
        if named.sequence == head.sequence and named.hash != head.hash:
            yield f"entry {named.sequence}, which the certificate {verb}, is not that of the head given"


def _notes(issue: Issue, keys: TrustedKeys, ledger: LedgerCopy | None, head: Head | None) -> list[str]:
    """What could not be checked."""
    known = keys if ledger is None else ledger.keys
    key = known.named(issue.public)
    notes = []
    if ledger is None and key is None:
        notes.append(KEYS_WITHOUT_RANGES)
    if ledger is None and key is not None and key.retired:
        notes.append(
            f"The certificate is signed with key {key.version}, which is retired. That it was signed before"
            " can be checked with the ledger only."
        )
    if ledger is None and keys.as_of is not None and issue.latest > keys.as_of.sequence:
        notes.append(
            f"The certificate was issued at entry {issue.latest}, after the list of public keys was made, at"
            f" entry {keys.as_of.sequence}: a newer list says whether its key was still in use."
        )
    if ledger is None and head is not None:
        notes.append(HEAD_ALONE)
    named = [own["entry"] for own in (issue.source or {}).get("versions", ()) if own["entry"] is not None]
    if ledger is None and named:
        notes.append(
            "What the certificate says of the source is what the ledger says in entry"
            f" {', '.join(map(str, named))}: that can be checked with the ledger only."
        )
    if ledger is not None and ledger.keys.vault == issue.vault:
        notes += issue.later_claims(ledger.erasures)
    if issue.issued_at is None:
        notes.append(
            "The certificate is of armnesia 0.1.0, and does not say at which entry of the ledger it was"
            " signed."
        )
    if key is not None and key.retired and issue.searched is not None:
        notes.append(
            "The ledger does not say what was searched, and the key of this certificate is retired: whoever"
            " holds the key could have added that."
        )
    if key is not None and key.retired and not issue.terms_fixed:
        notes.append(
            "The ledger does not fix the words of this certificate, and its key is retired: whoever holds the"
            " key could have changed them. Ask the operator to issue it again."
        )
    return notes
