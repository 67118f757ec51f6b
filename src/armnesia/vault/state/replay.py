"""What the ledger tells: the state that a vault must have, where its own cannot be trusted."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.vault.configuration import Configuration
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.state.sealed_state import State, new_stream
from armnesia.vault.state.table_digests import Tallies
from armnesia.vault.storage.database import Row, Session
from armnesia.vault.storage.schema import VERSION


@dataclass(frozen=True)
class Told:
    """What the entries of a whole ledger say of the state at its end."""

    configuration: Configuration
    head: Head
    digest_key: int
    public_keys: tuple[str, ...]
    deleted_counts: IntArray
    """How many records of each arm were deleted, as far as that is public."""

    @classmethod
    def by(cls, rows: Iterable[Row]) -> "Told":
        """Read the rows (sequence, entry, hash) of a ledger that has been checked."""
        facts: dict[str, Any] = {}
        keys: list[str] = []
        digest_key, gone, head = 1, np.zeros(1, dtype=np.int64), None
        for sequence, text, hash_ in rows:
            entry, head = json.loads(text), Head(sequence, hash_)
            kind = entry["kind"]
            if kind == "init":
                facts, keys = dict(entry["configuration"]), [entry["public_key"]]
            elif kind in ("actions", "policy"):
                facts[kind] = entry[kind]
            elif kind == "rotate_signing":
                keys.append(entry["public"])
            digest_key += kind == "rotate_digest"
            gone = gone + np.array(entry.get("counts", 0), dtype=np.int64)
        assert head is not None  # a ledger begins with init
        return cls(Configuration.from_facts(facts), head, digest_key, tuple(keys), gone)

    def state(self, vault: str, tallies: Tallies) -> State:
        """The state as far as the ledger tells: no rows are counted yet."""
        stream = new_stream(self.configuration, self.deleted_counts)
        state = State(
            *(vault, VERSION, self.configuration, None, None, "default", self.head, 0),
            digest_key=self.digest_key,
            signing_key=len(self.public_keys),
            tallies=tallies,
        )
        return state if stream is None else state.with_stream(stream)

    def contradictions(self, state: State) -> Iterator[str]:
        """Where a state that was changed says something else."""
        if state.configuration != self.configuration:
            yield "the configuration is not the one that the ledger tells of"
        if (state.digest_key, state.signing_key) != (self.digest_key, len(self.public_keys)):
            yield "the keys in use are not those that the ledger tells of"
        if state.stream is not None:
            if state.stream.statistics.actions != self.configuration.actions:
                yield "the labels of the arms are not the actions that the ledger tells of"
            elif (
                state.stream.deleted_counts is not None
                and (state.stream.deleted_counts != self.deleted_counts).any()
            ):
                yield "the numbers of deleted records are not those that the ledger tells of"

    def strange_keys(self, keyring: Keyring) -> Iterator[str]:
        """Signing keys of this machine that are not the vault's: others could not check what they sign."""
        for version, public in enumerate(self.public_keys, 1):
            if version > keyring.signing_version or keyring.public_key(version) != public:
                yield (
                    f"keys: signing key {version} of the keys' file is not the one that the ledger tells of;"
                    " get the file from where the key was made"
                )


def ledger_rows(session: Session) -> list[Row]:
    """The ledger as it is stored: (sequence, entry, hash)."""
    return session.query("SELECT sequence, entry, hash FROM ledger ORDER BY sequence")


def exported_rows(export: Mapping[str, Any]) -> list[Row]:
    """The same of an export."""
    return [(row["sequence"], row["entry"], row["hash"]) for row in export["ledger"]]
