"""A copy of a vault's ledger, from an export: what certificates are checked against without the vault."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from os import PathLike
from typing import Any, BinaryIO

from armnesia.core.errors import InvalidInputError, VaultError, refuse_first
from armnesia.core.files import open_plain
from armnesia.vault.keys.canonical_json import sha256_hex
from armnesia.vault.keys.json_sections import JsonSections
from armnesia.vault.ledger.ledger import Entry, Head, check_chain
from armnesia.vault.ledger.public_keys import (
    KEY_KINDS,
    PublicKeys,
    key_history,
    predecessors_in,
    rotation_problems,
)
from armnesia.vault.ledger.source_claim import KINDS as SOURCE_KINDS

EXPORT_SCHEMA = "armnesia.export/1"
_LONGEST_FIRST, _LONGEST_LINE = 1 << 20, 1 << 24
"""Bytes: a longer line is no entry, and its parts are none."""


@dataclass(frozen=True)
class LedgerCopy:
    """The hashes and the signing keys of a whole ledger, whose chain has been checked.

    >>> first = Entry.next_after(
    ...     0, "0" * 64, vault="v-1", kind="init", time="2026-11-15T10:42:07.123456Z", code="0.1.0",
    ...     public_key="ab" * 32,
    ... )
    >>> copy = LedgerCopy.of([(1, first.text, first.hash)])
    >>> copy.head == first.head, copy.keys.keys[0].range_words
    (True, 'from entry 1 on')
    """

    hashes: tuple[str, ...]
    keys: PublicKeys
    confirmed: frozenset[str]
    """The keys that were put in use by an entry that they signed, with the whole ledger before it."""
    predecessors: tuple[PublicKeys, ...] = ()
    """The public keys of the vaults that the vault succeeds, as of their last heads."""
    erasures: tuple[Mapping[str, Any], ...] = ()
    """The entries that say how far rows are erased at sources, and of readmissions."""

    @property
    def head(self) -> Head:
        """The number and the hash of the last entry."""
        return self.keys.head

    def has(self, head: Head) -> bool:
        """Whether the entry with this number has this hash."""
        return 1 <= head.sequence <= len(self.hashes) and self.hashes[head.sequence - 1] == head.hash

    @classmethod
    def of(cls, rows: Iterable[tuple[int, str, str]]) -> "LedgerCopy":
        """Check the rows (sequence, text, hash) of a ledger; refuse them if anything is wrong."""
        rows = iter(rows)
        first = next(rows, None)
        if first is None:
            raise _unusable("it has no entries")
        hashes: list[str] = []
        key_texts: list[str] = []
        erasure_texts: list[str] = []
        try:
            vault = Entry.from_text(first[1]).vault
        except InvalidInputError as error:
            raise _unusable(f"sequence 1: {error}") from None
        entries_seen = _noted(chain([first], rows), hashes, key_texts, erasure_texts)
        refuse_first(check_chain(entries_seen, vault=vault), error=_unusable)
        entries = [json.loads(text) for text in key_texts]
        try:
            refuse_first(rotation_problems(entries), error=_unusable)
            keys = PublicKeys(vault, Head(len(hashes), hashes[-1]), key_history(entries))
            before = predecessors_in(entries[0])
        except InvalidInputError as error:
            raise _unusable(str(error)) from None
        confirmed = frozenset(entry["public"] for entry in entries if "signed_by_new" in entry)
        erasures = tuple(each for each in map(json.loads, erasure_texts) if each["kind"] in SOURCE_KINDS)
        return cls(tuple(hashes), keys, confirmed, before, erasures)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "LedgerCopy":
        """Read the ledger from a file that `armnesia export` or `armnesia ledger --export` wrote.

        >>> LedgerCopy.read("no-such-file")
        Traceback (most recent call last):
        armnesia.core.errors.InvalidInputError: no-such-file cannot be read: No such file or directory
        """
        try:
            with open_plain(path) as file:
                first_line = file.readline(_LONGEST_FIRST)
                file.seek(0)
                rows = _rows_of_lines(file) if _is_entry(first_line) else _rows_of_export(file, str(path))
                return cls.of(rows)
        except OSError as error:
            raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None


def _noted(
    rows: Iterable[tuple[int, str, str]], hashes: list[str], key_texts: list[str], erasure_texts: list[str]
) -> Iterator[tuple[int, str, str]]:
    """The same rows; hashes, and texts that may put keys in use or erase rows, are noted in passing."""
    for sequence, text, hash_ in rows:
        hashes.append(hash_)
        if any(f'"kind":"{kind}"' in text for kind in KEY_KINDS):
            key_texts.append(text)
        if any(f'"kind":"{kind}"' in text for kind in SOURCE_KINDS):
            erasure_texts.append(text)
        yield sequence, text, hash_


def _is_entry(line: bytes) -> bool:
    try:
        Entry.from_text(line.decode("utf-8").removesuffix("\n"))
    except ValueError:  # not UTF-8, or no entry
        return False
    return True


def _rows_of_lines(file: BinaryIO) -> Iterator[tuple[int, str, str]]:
    """The rows of a file with one entry per line."""
    for number, line in enumerate(iter(partial(file.readline, _LONGEST_LINE), b""), 1):
        text = line.removesuffix(b"\n").decode("utf-8", errors="replace")
        yield number, text, sha256_hex(text)


def _rows_of_export(file: BinaryIO, path: str) -> Iterator[tuple[int, str, str]]:
    """The rows of the ledger in an export, which must end at the head that the export names."""
    export = JsonSections(file, path)
    named = ("schema" in export, "head" in export, "ledger" in export and export.is_list("ledger"))
    if not all(named) or export.value("schema") != EXPORT_SCHEMA:
        raise _no_ledger(path)
    head = None
    for row in export.items("ledger"):
        match row:
            case {"sequence": int(sequence), "entry": str(text), "hash": str(hash_)}:
                head = f"{sequence}:{hash_}"
                yield sequence, text, hash_
            case _:
                raise _no_ledger(path)
    if export.value("head") != head:
        raise _unusable("its last entry is not the head that the export names")


def _no_ledger(path: str) -> InvalidInputError:
    return InvalidInputError(f"{path} is no export of a vault and no ledger, one entry per line")


def _unusable(problem: str) -> VaultError:
    return VaultError(f"the ledger given cannot be used: {problem}")
