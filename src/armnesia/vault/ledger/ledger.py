"""The ledger: an append-only chain of entries, each with the hash of the one before.

The hash of an entry is the SHA-256 of its canonical JSON; `previous` is the hash of the entry before, 64
zeros in the first one. The head is the number and the hash of the last entry. A copy of the head, kept
elsewhere, detects whether an entry up to it was changed, moved or removed. An entry names no person: it has a
salted commitment to the request.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from armnesia.core.errors import InvalidInputError, refuse_first
from armnesia.core.messages import shown
from armnesia.vault.keys.canonical_json import plain_and_text, read_json, sha256_hex

SCHEMA = "armnesia.ledger/1"
GENESIS = "0" * 64
KINDS = (
    "init",
    "actions",
    "add_arm",
    "retire_arm",
    "user_type",
    "correct",
    "forget",
    "nothing_held",
    "erase_source",
    "readmit",
    "policy",
    "rotate_signing",
    "rotate_digest",
    "restore",
    "rebuild",
    "succeeded",
)
_HASH = re.compile(r"[0-9a-f]{64}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_HEAD = re.compile(r"(?=0*[1-9])(\d{1,18}):([0-9a-f]{64})", re.ASCII)


@dataclass(frozen=True)
class Head:
    """The head of a ledger: the number of its entries, and the hash of the last.

    >>> Head.parse("12:" + "ab" * 32).sequence
    12
    """

    sequence: int
    hash: str

    def __post_init__(self) -> None:
        if not (isinstance(self.sequence, int) and self.sequence >= 0 and _HASH.fullmatch(self.hash)):
            raise InvalidInputError(
                "a head must be a number of entries, 0 or more, and a hash of 64 hexadecimal digits;"
                f" got {self.sequence!r} and {self.hash!r}"
            )

    @classmethod
    def parse(cls, text: str) -> "Head":
        """Read a head from its text, sequence:hash; every vault has a first entry, so that none has head 0.

        >>> Head.parse("12")
        Traceback (most recent call last):
        armnesia.core.errors.InvalidInputError: a head must look like 12:3f8a… (a number from 1, 64 hex
        digits); got '12'
        """
        match = _HEAD.fullmatch(text.strip())
        if not match:
            raise InvalidInputError(
                f"a head must look like 12:3f8a… (a number from 1, 64 hex digits); got {shown(text)}"
            )
        return cls(int(match[1]), match[2])

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"


@dataclass(frozen=True)
class Entry:
    """One entry of the ledger, and its text and hash.

    >>> first = Entry.next_after(
    ...     0, GENESIS, vault="v-1", kind="init", time="2026-11-15T10:42:07.123456Z", code="armnesia 0.1.0"
    ... )
    >>> first.sequence, first.hash == sha256_hex(first.text)
    (1, True)
    """

    fields: Mapping[str, Any]
    text: str = field(init=False, repr=False, compare=False)
    hash: str = field(init=False, repr=False, compare=False)
    sequence: int = field(init=False, repr=False, compare=False)
    """Its number in the ledger, from 1."""
    kind: str = field(init=False, repr=False, compare=False)
    """The operation, one of `KINDS`."""
    vault: str = field(init=False, repr=False, compare=False)
    """The id of the vault that wrote it."""

    def __post_init__(self) -> None:
        copy, text = plain_and_text(self.fields)
        refuse_first(_field_problems(copy), "an entry's {}", InvalidInputError)
        self.__dict__.update(
            fields=MappingProxyType(copy),
            text=text,
            hash=sha256_hex(text),
            sequence=copy["sequence"],
            kind=copy["kind"],
            vault=copy["vault"],
        )

    @classmethod
    def next_after(
        cls, length: int, head: str, *, vault: str, kind: str, time: str, code: str, **facts: Any
    ) -> "Entry":
        """The entry that follows a ledger of this length, whose last hash is `head`.

        >>> Entry.next_after(
        ...     4, "ab" * 32, vault="v-1", kind="policy", time="2026-11-15T10:42:07.123456Z", code="0.1.0",
        ...     policy={"max_epsilon": 1.0},
        ... ).sequence
        5
        """
        own = {"schema": SCHEMA, "sequence": length + 1, "previous": head}
        taken = sorted(own.keys() & facts.keys())
        if taken:
            raise InvalidInputError(f"a fact must not be named {taken[0]}: every entry has that field")
        return cls({**facts, **own, "vault": vault, "kind": kind, "time": time, "code": code})

    @classmethod
    def from_text(cls, text: str) -> "Entry":
        """Read an entry from its canonical text; any other text is refused, even if it means the same.

        >>> Entry.from_text("{}")
        Traceback (most recent call last):
        armnesia.core.errors.InvalidInputError: an entry's schema must be armnesia.ledger/1; got None
        """
        fields = read_json(text, "an entry")
        if not isinstance(fields, dict):
            raise InvalidInputError("an entry must be a JSON object")
        entry = cls(fields)
        if entry.text != text:
            raise InvalidInputError("an entry must be written in canonical JSON")
        return entry

    @property
    def time(self) -> str:
        """When it was written, in UTC, by the clock of the machine that wrote it."""
        return str(self.fields["time"])

    @property
    def previous(self) -> str:
        """The hash of the entry before."""
        return str(self.fields["previous"])

    @property
    def head(self) -> Head:
        """The ledger's head when this was its last entry."""
        return Head(self.sequence, self.hash)


def _field_problems(fields: Mapping[str, Any]) -> Iterator[str]:
    """The required fields that are missing or invalid."""
    sequence = fields.get("sequence")
    if fields.get("schema") != SCHEMA:
        yield f"schema must be {SCHEMA}; got {fields.get('schema')!r}"
    if not isinstance(sequence, int) or isinstance(sequence, bool) or sequence < 1:
        yield f"sequence must be 1 or more; got {sequence!r}"
    if fields.get("kind") not in KINDS:
        yield f"kind must be one of {', '.join(KINDS)}; got {fields.get('kind')!r}"
    if (fields.get("kind") == "init") != (sequence == 1):
        yield f"kind must be init at sequence 1 and nowhere else; got {fields.get('kind')!r} at {sequence!r}"
    for name, form in (("previous", _HASH), ("time", _TIME)):
        value = fields.get(name)
        if not isinstance(value, str) or not form.fullmatch(value):
            yield f"{name} must match {form.pattern}; got {value!r}"
    if sequence == 1 and fields.get("previous") != GENESIS:
        yield "previous must be 64 zeros at sequence 1"
    for name in ("vault", "code"):
        if not isinstance(fields.get(name), str) or not fields[name]:
            yield f"{name} must be text; got {fields.get(name)!r}"


def leads_to(rows: Iterable[tuple[int, str, str]], older: Head, newer: Head) -> bool:
    """Whether stored rows (sequence, text, hash) lead from one head of a ledger to a later one.

    >>> leads_to([], Head(1, "ab" * 32), Head(2, "cd" * 32))
    False
    """
    at = None
    for sequence, text, _ in rows:
        hash_ = sha256_hex(text)
        if at is None:
            follows = Head(sequence, hash_) == older
        else:
            fields = read_json(text, "an entry")
            follows = isinstance(fields, dict) and fields.get("previous") == at.hash
        if not follows:
            return False
        at = Head(sequence, hash_)
    return at == newer


def check_chain(
    rows: Iterable[tuple[int, str, str]],
    *,
    vault: str,
    head: Head | Iterable[Head] | None = None,
    end: Head | None = None,
) -> list[str]:
    """Check stored rows (sequence, text, hash) in order; one sentence per problem, with its sequence number.

    `head` is a head that was kept elsewhere, or several: the ledger must contain that entry. `end` is the
    head in the vault's state: the ledger must end there. One pass, constant memory.

    >>> check_chain([], vault="v-1", head=Head(2, "ab" * 32))
    ['sequence 1 to 2: missing, the ledger is shorter than the head that was kept']
    """
    problems: list[str] = []
    kept = dict.fromkeys([] if head is None else [head] if isinstance(head, Head) else head)
    length, linked = 0, {GENESIS}
    for sequence, text, stored_hash in rows:
        if not (isinstance(sequence, int) and isinstance(text, str)):
            problems.append(f"sequence {length + 1}: a row has values that armnesia does not write")
            linked.clear()
            continue
        if sequence > length + 1:
            problems.append(f"sequence {_span(length + 1, sequence - 1)}: missing")
            linked.clear()
        elif sequence <= length:
            problems.append(f"sequence {sequence}: out of order, it comes after sequence {length}")
            linked.clear()
        length, true_hash = sequence, sha256_hex(text)
        found = list(_row_problems(sequence, text, vault, linked))
        if true_hash != stored_hash:
            found.append("the stored hash is not the hash of the entry")
        if any(known.sequence == sequence and known.hash != true_hash for known in kept):
            found.append("the hash of the entry differs from the head that was kept")
        if end is not None and end.sequence == sequence and end.hash != true_hash:
            found.append("the hash of the entry differs from the head in the vault's state")
        problems += [f"sequence {sequence}: {what}" for what in found]
        linked = {true_hash, stored_hash}  # so that the next entry does not report it again
    ends = [(known, "the head that was kept") for known in kept]
    for known, name in [*ends, *([] if end is None else [(end, "the vault's state records")])]:
        if known.sequence == 0 and known.hash != GENESIS:
            problems.append(f"sequence 0: {name} is of an entry that no ledger has")
        if length < known.sequence:
            missing = _span(length + 1, known.sequence)
            problems.append(f"sequence {missing}: missing, the ledger is shorter than {name}")
    if end is not None and length > end.sequence:
        more = _span(end.sequence + 1, length)
        problems.append(f"sequence {more}: more entries than the vault's state records")
    return problems


def _row_problems(sequence: int, text: str, vault: str, linked: set[str]) -> Iterator[str]:
    """The problems of an entry; `linked` are the hashes that `previous` may have, empty if not known."""
    try:
        entry = Entry.from_text(text)
    except InvalidInputError as error:
        yield str(error)
        return
    if entry.sequence != sequence:
        yield f"the entry stored here has sequence {entry.sequence}"
    if entry.vault != vault:
        yield "the entry belongs to another vault"
    if linked and entry.previous not in linked:
        yield "the entry does not follow from the one before it"


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"
