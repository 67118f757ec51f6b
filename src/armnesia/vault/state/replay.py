"""Replaying the ledger: the state that its entries imply, where the stored state cannot be trusted."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.vault.configuration import Configuration
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.state.sealed_state import State, empty_stream
from armnesia.vault.state.table_digests import TableDigests
from armnesia.vault.storage.database import Row
from armnesia.vault.storage.schema import VERSION


@dataclass(frozen=True)
class ReplayedState:
    """What the entries of a whole ledger say about the state at its end."""

    configuration: Configuration
    head: Head
    digest_key: int
    public_keys: tuple[str, ...]
    deleted_counts: IntArray
    """How many records of each arm were deleted, as far as that is public."""

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "ReplayedState":
        """Replay the rows (sequence, entry, hash) of a ledger that has been checked."""
        configuration: dict[str, Any] = {}
        keys: list[str] = []
        digest_key, deleted, head = 1, np.zeros(1, dtype=np.int64), None
        for sequence, text, hash_ in rows:
            entry, head = json.loads(text), Head(sequence, hash_)
            kind = entry["kind"]
            if kind == "init":
                configuration, keys = dict(entry["configuration"]), [entry["public_key"]]
            elif kind in ("actions", "policy", "user_type"):
                configuration[kind] = entry[kind]
            elif kind == "rotate_signing":
                keys.append(entry["public"])
            digest_key += kind == "rotate_digest"
            deleted = deleted + np.array(entry.get("counts", 0), dtype=np.int64)
        assert head is not None  # a ledger begins with init
        return cls(Configuration.from_dict(configuration), head, digest_key, tuple(keys), deleted)

    def state(self, vault: str, digests: TableDigests) -> State:
        """The state as far as the ledger determines it: no records are counted yet."""
        stream = empty_stream(self.configuration, self.deleted_counts)
        state = State(
            *(vault, VERSION, self.configuration, None, None, "default", self.head, 0),
            digest_key=self.digest_key,
            signing_key=len(self.public_keys),
            digests=digests,
        )
        return state if stream is None else state.with_stream(stream)

    def contradictions(self, state: State) -> Iterator[str]:
        """Where a stored state differs from the replayed one."""
        if state.configuration != self.configuration:
            yield "the configuration is not the one in the ledger"
        if (state.digest_key, state.signing_key) != (self.digest_key, len(self.public_keys)):
            yield "the keys in use are not those in the ledger"
        if state.stream is not None:
            deleted = state.stream.deleted_counts
            if state.stream.statistics.actions != self.configuration.actions:
                yield "the labels of the arms are not the actions in the ledger"
            elif deleted is not None and (deleted != self.deleted_counts).any():
                yield "the numbers of deleted records are not those in the ledger"

    def unknown_signing_keys(self, keyring: Keyring) -> Iterator[str]:
        """Signing keys of this keyring that the ledger does not name: nobody could check their signatures."""
        for version, public in enumerate(self.public_keys, 1):
            if version > keyring.signing_version or keyring.public_key(version) != public:
                yield (
                    f"keys: signing key {version} of the keys' file is not the one in the ledger; get the"
                    " file from where the key was made"
                )


def exported_ledger(export: Mapping[str, Any]) -> list[Row]:
    """The rows (sequence, entry, hash) of the ledger in an export."""
    return [(row["sequence"], row["entry"], row["hash"]) for row in export["ledger"]]
