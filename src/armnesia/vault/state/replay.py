"""Replaying the ledger: the state that its entries imply, where the stored state cannot be trusted."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.core.errors import VaultError, refuse_first
from armnesia.vault.configuration import Configuration, Policy
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.ledger.public_keys import KEY_KINDS, SigningKey, key_history
from armnesia.vault.state.decision_statistics import ArmSums
from armnesia.vault.state.decisions import DEFAULT, VaultDecision
from armnesia.vault.state.sealed_state import ROTATED_BELOW, State, store_statements
from armnesia.vault.state.table_digests import TableDigests
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row, Session
from armnesia.vault.storage.schema import WITH_DECISIONS, WITH_SERVICE


@dataclass(frozen=True)
class ReplayedState:
    """What the entries of a whole ledger say about the state at its end."""

    configuration: Configuration
    head: Head
    digest_key: int
    signing_keys: tuple[SigningKey, ...]
    digest_key_checks: Mapping[int, str]
    """The check value of each digest key, as far as the ledger has it."""
    deleted_counts: IntArray
    """How many records of each arm were deleted, as far as that is public; without key columns."""
    deleted_by_key: Mapping[tuple[str, ...], tuple[int, ...]]
    """The same by the keys of the decisions."""

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "ReplayedState":
        """Replay the rows (sequence, entry, hash) of a ledger that has been checked."""
        configuration: dict[str, Any] = {}
        key_entries: list[dict[str, Any]] = []
        checks: dict[int, str] = {}
        digest_key, head = 1, None
        deleted: list[int] = []
        arm_entries: list[dict[str, Any]] = []
        by_key: list[dict[str, Any]] = []
        policies: list[dict[str, Any]] = []
        for sequence, text, hash_ in rows:
            entry, head = json.loads(text), Head(sequence, hash_)
            kind = entry["kind"]
            if kind == "init":
                configuration = dict(entry["configuration"])
                checks |= {1: entry["digest_key_check"]} if "digest_key_check" in entry else {}
                checks |= dict(enumerate(entry.get("digest_key_checks", []), 1))  # of a successor
                digest_key = max(1, len(checks))
            elif kind in ("actions", "user_type"):
                configuration[kind] = entry[kind]
            elif kind == "policy":
                policies.append(entry[kind])
            elif kind == "succeeded":
                configuration["successors"] = [*configuration.get("successors", ()), entry["successor"]]
            elif kind in ("add_arm", "retire_arm"):
                arm_entries.append(entry)
            elif kind == "rotate_digest":
                checks |= dict(enumerate(entry.get("digest_key_checks", []), 1))
            if kind in KEY_KINDS:
                key_entries.append(entry)
            digest_key += kind == "rotate_digest"
            deleted = _sum_of(deleted, entry.get("counts", []))
            by_key += entry.get("decisions", [])
        assert head is not None  # a ledger begins with init
        known = _with_arms(Configuration.from_dict(configuration), arm_entries)
        for policy in policies:
            known = known.after_change_of_policy(Policy(**{**policy, "levels": tuple(policy["levels"])}))
        n_arms = len(known.actions or ())
        in_decisions = _added_up(by_key, [column.name for column in known.key_columns], n_arms)
        counts = np.array(_sum_of(deleted, [0] * n_arms), dtype=np.int64)
        return cls(known, head, digest_key, key_history(key_entries), checks, counts, in_decisions)

    @property
    def public_keys(self) -> tuple[str, ...]:
        """The public keys of the signing keys, in order."""
        return tuple(key.public for key in self.signing_keys)

    def state(self, vault: str, digests: TableDigests) -> State:
        """The state as far as the ledger determines it: no records are counted yet."""
        return State.initial(
            vault,
            self.configuration,
            self.head,
            digest_key=self.digest_key,
            signing_key=len(self.public_keys),
            digests=digests,
            deleted_counts=self.deleted_counts,
        )

    def contradictions(self, state: State) -> Iterator[str]:
        """Where a stored state differs from the replayed one."""
        if state.configuration != self.configuration:
            yield "the configuration is not the one in the ledger"
        if (state.digest_key, state.signing_key) != (self.digest_key, len(self.public_keys)):
            yield "the keys in use are not those in the ledger"
        if state.stream is not None:
            deleted = state.stream.deleted_counts
            if deleted is not None and (deleted != self.deleted_counts).any():
                yield "the numbers of deleted records are not those in the ledger"

    def counts_differ(self, decisions: Iterable[VaultDecision]) -> bool:
        """Whether decisions have other numbers of deleted records than the ledger; only with key columns."""
        if self.configuration.penalty != "frozen":
            return False
        found = {
            each.key: each.statistics.deleted for each in decisions if any(each.statistics.deleted or ())
        }
        return found != {key: counts for key, counts in self.deleted_by_key.items() if any(counts)}

    def with_deleted(self, decisions: Iterable[VaultDecision]) -> list[VaultDecision]:
        """The decisions with the numbers of deleted records that the ledger has, where the penalty is frozen.

        Those that had records when the ledger was written, and that there are not, are added without records.
        """
        found = list(decisions)
        if self.configuration.penalty != "frozen":
            return found
        empty = ArmSums.empty(len(self.configuration.actions or ()), "frozen")
        missing = [key for key in self.deleted_by_key if key not in {each.key for each in found}]
        found += [
            VaultDecision(number, key, empty, None, DEFAULT)
            for number, key in enumerate(missing, len(found) + 1)
        ]
        return [
            replace(
                each,
                statistics=replace(each.statistics, deleted=self.deleted_by_key.get(each.key, empty.deleted)),
            )
            for each in found
        ]

    def key_problems(self, keyring: Keyring) -> Iterator[str]:
        """Keys of this keyring that are not those of the ledger: a sentence each.

        With another signing key nobody could check the signatures; with another digest key no person's
        records would be found.
        """
        for version, check in self.digest_key_checks.items():
            if version > keyring.digest_version or keyring.digest_check(version) != check:
                yield (
                    f"keys: digest key {version} of the keys' file is not the one in the ledger; get the file"
                    " from a backup of the keys"
                )
        for version, public in enumerate(self.public_keys, 1):
            if version > keyring.signing_version or keyring.public_key(version) != public:
                yield (
                    f"keys: signing key {version} of the keys' file is not the one in the ledger; get the"
                    " file from a backup of the keys, or from the machine where the key was rotated last"
                )


def _with_arms(configuration: Configuration, entries: Iterable[Mapping[str, Any]]) -> Configuration:
    """The configuration with the arms that entries of the ledger add and retire."""
    for entry in entries:
        if entry["kind"] == "add_arm":
            configuration = configuration.with_added_arm(entry["arm"], entry["where"])
        else:
            configuration = configuration.with_retired_arm(entry["arm"], entry["where"], entry["new_rows"])
    return configuration


def _sum_of(some: Sequence[int], others: Sequence[int]) -> list[int]:
    """Counts per arm; entries from before an arm was added have none of it."""
    return [one + other for one, other in zip_longest(some, others, fillvalue=0)]


def _added_up(
    decisions: Iterable[Mapping[str, Any]], names: Sequence[str], n_arms: int
) -> dict[tuple[str, ...], tuple[int, ...]]:
    """The counts of each key in entries of the ledger."""
    found: dict[tuple[str, ...], tuple[int, ...]] = {}
    for each in decisions:
        key = tuple(each["key"][name] for name in names)
        found[key] = tuple(_sum_of(found.get(key, (0,) * n_arms), each["counts"]))
    return found


def replace_state(session: Session, all_keys: Keyring, replayed: ReplayedState, version: int) -> State:
    """Store the replayed state in the place of a broken one; it counts no records yet.

    The new seal is on the keys, too: they must be those of the ledger. `version` is that of the tables.
    """
    refuse_first(replayed.key_problems(all_keys))
    for number in range(1, replayed.digest_key):  # the newest is confirmed by the table digests
        if number not in replayed.digest_key_checks:
            raise VaultError(
                f"the ledger, written by an older armnesia, cannot confirm digest key {number}: restore a"
                " backup"
            )
    nothing_known = TableDigests(*[-1] * len(TableDigests._fields))  # which no rows have
    state = replayed.state(all_keys.vault, nothing_known)
    found = tables.read_stored_digests(session)
    with suppress(IndexError, ValueError, TypeError, AttributeError):
        masked, _, _ = found[0][0].partition(ROTATED_BELOW)
        digests = TableDigests.unmasked(masked, state.keyring_in_use(all_keys), state.head)
        state = replace(state, digests=digests)
    if version < WITH_SERVICE:
        tables.create_service_tables(session)
    if version < WITH_DECISIONS:
        tables.replace_state_tables(session)
        found = []
    elif state.configuration.by:  # which are needed: they say which records belong to which decision
        state = replace(state, n_decisions=tables.count_decisions(session))
        if state.n_decisions < state.configuration.declared_decisions:
            raise VaultError("declared decisions of the vault are missing: restore a backup")
    else:
        tables.delete_decisions(session)
    before = replace(state, decision=None) if found else None
    keyring = state.keyring_in_use(all_keys)
    statements, _, state = store_statements(before, state, state.digests, state.head, keyring)
    session.execute_together(statements)
    return state
