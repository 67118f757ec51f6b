"""Replaying a ledger: what its entries, and the digests of its journal, say about the vault at its end."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from armnesia.core.errors import InvalidInputError
from armnesia.vault.configuration import Configuration
from armnesia.vault.db.schema import SuppressedRow
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.entry import Entry
from armnesia.vault.ledger.envelope import Envelope
from armnesia.vault.ledger.journal import Line
from armnesia.vault.ledger.merkle import Tree, split
from armnesia.vault.state.decisions import DEFAULT, ArmSums, VaultDecision


@dataclass
class Replayed:
    """What the entries so far imply."""

    leaves: list[bytes] = field(default_factory=list)
    commit: int = 0
    """The last commit, of a journal."""
    configuration: Configuration = field(default_factory=lambda: Configuration(actions=None))
    keys: list[str] = field(default_factory=list)
    """The public keys, in their order."""
    digest_check: str = ""
    """The check value of the digest key."""
    deleted: dict[tuple[str, ...], tuple[int, ...]] = field(default_factory=dict)
    """By the key of a decision, how many records of each arm were deleted, as far as the level says it."""
    suppressed: dict[bytes, SuppressedRow] = field(default_factory=dict)
    """The suppression list, from a journal."""
    revoked: dict[int, int] = field(default_factory=dict)
    """The numbers of the tokens that were revoked, by the entry."""
    dropped: list[str] = field(default_factory=list)
    """The ids of the sources that no longer exist."""
    problems: list[str] = field(default_factory=list)
    """What is wrong with the entries, a sentence each."""

    @classmethod
    def of_journal(cls, lines: Iterable[Line], vault: str) -> "Replayed":
        """Replay a journal, with its digests."""
        found = cls()
        for line in lines:
            try:
                found._add_line(line, vault)
            except (ValueError, TypeError):
                found.problems.append(f"the lists of commit {line.commit} are damaged")
        return found

    def _add_line(self, line: Line, vault: str) -> None:
        people = {number: split(leaves) for number, leaves, *_ in line.people}
        for envelope in line.entries:
            entry = self.add(envelope, vault)
            if entry is None or entry.kind != "forget":
                continue
            if Tree(people.get(entry.number, ())).root != entry.subject:
                self.problems.append(
                    f"it lacks the people of entry {entry.number}: it is an export for auditors, or was"
                    " changed: give the journal that lies beside the keys"
                )
        self.suppressed |= {row.digest: row for row in line.suppressed}
        self.commit = line.commit

    def add(self, envelope: Envelope, vault: str) -> Entry | None:
        """Replay the next entry; None if it is none."""
        number = len(self.leaves) + 1
        self.leaves.append(envelope.leaf)
        try:
            entry = Entry.of(envelope)
        except InvalidInputError as error:
            self.problems.append(f"entry {number}: {error}")
            return None
        if entry.number != number or entry.vault != vault:
            self.problems.append(f"entry {number} is entry {entry.number} of vault {entry.vault}")
        if entry.kind in ("init", "signing_key"):
            self.keys.append(entry.signer)
        if not self.keys or entry.signer != self.keys[-1] or not envelope.is_signed_by(entry.signer):
            self.problems.append(f"entry {number} is not signed by the key in use")
        try:
            self._learn(entry)
        except (InvalidInputError, KeyError, TypeError, AttributeError, ValueError, IndexError):
            self.problems.append(f"entry {number} has facts that armnesia does not write")
        return entry

    def _learn(self, entry: Entry) -> None:
        facts = entry.facts
        if "configuration" in facts:
            self.configuration = Configuration.from_dict(facts["configuration"])
        match entry.kind:
            case "init":
                self.digest_check = facts["digest_key"]
            case "token_revoked":
                self.revoked[entry.number] = facts["token"]
            case "restored":
                self.dropped += facts.get("dropped", ())
            case "forget":
                names = [column.name for column in self.configuration.key_columns]
                if "counts" in facts:
                    self._count_deleted((), facts["counts"])
                for own in facts.get("decisions", ()):
                    self._count_deleted(tuple(own["key"][name] for name in names), own["counts"])

    def _count_deleted(self, key: tuple[str, ...], counts: Iterable[int]) -> None:
        pairs = zip_longest(self.deleted.get(key, ()), counts, fillvalue=0)
        self.deleted[key] = tuple(before + more for before, more in pairs)

    def key_problems(self, keyring: Keyring) -> Iterator[str]:
        """Keys of a keyring that are not those of the ledger: a sentence each.

        With another signing key nobody could check the signatures; with another digest key no person's
        records would be found.
        """
        if keyring.digest_check != self.digest_check:
            yield (
                "keys: the digest key of the keys' file is not the one in the ledger; get the file from a"
                " backup of the keys"
            )
        for version, key in enumerate(self.keys, 1):
            if version > keyring.signing_version or keyring.public_key(version) != key:
                yield (
                    f"keys: signing key {version} of the keys' file is not the one in the ledger; get the"
                    " file from a backup of the keys, or from the machine where the key was rotated last"
                )

    def with_deleted(self, decisions: Iterable[VaultDecision]) -> list[VaultDecision]:
        """The decisions with all arms, and with the numbers of deleted records where the penalty is frozen.

        Decisions that the ledger counts deletions of, and that there are not, are added without records. So
        is the one of a vault without key columns.
        """
        n_arms, frozen = len(self.configuration.actions or ()), self.configuration.penalty == "frozen"
        found = [replace(each, statistics=each.statistics.with_arms(n_arms)) for each in decisions]
        needed: Iterable[tuple[str, ...]] = self.deleted if frozen else ()
        if not self.configuration.by:
            needed = [()] if n_arms else []
        known, empty = {each.key for each in found}, ArmSums.empty(n_arms, self.configuration.penalty)
        missing = [key for key in needed if key not in known]
        first = len(found) + 1
        found += [VaultDecision(n, key, empty, None, DEFAULT) for n, key in enumerate(missing, first)]
        if not frozen:
            return found
        counts = {each.key: self.deleted.get(each.key, ()) for each in found}
        whole = {key: (*own, *(0,) * (n_arms - len(own))) for key, own in counts.items()}
        return [replace(each, statistics=replace(each.statistics, deleted=whole[each.key])) for each in found]
