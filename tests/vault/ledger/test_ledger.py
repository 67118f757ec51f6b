"""The ledger: a chain in which every change, gap, swap and cut is found, and found where it is."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.core.errors import InvalidInputError
from armnesia.vault.ledger.commitments import commitment
from armnesia.vault.ledger.ledger import GENESIS, KINDS, Entry, Head, check_chain

TIME = "2026-11-15T10:42:07.123456Z"
COMMON: dict[str, Any] = {"vault": "v-1", "time": TIME, "code": "armnesia 0.1.0"}
Row = tuple[int, str, str]


def chain(length: int, vault: str = "v-1") -> list[Row]:
    rows: list[Row] = []
    head = GENESIS
    for number in range(length):
        facts: dict[str, Any] = {**COMMON, "vault": vault}
        if number:
            facts |= {"level": "retained", "budget": {"epsilon": 0.5, "delta": 1e-5}, "released": "é"}
        entry = Entry.next_after(number, head, kind="forget" if number else "init", **facts)
        rows.append((entry.sequence, entry.text, entry.hash))
        head = entry.hash
    return rows


ROWS = chain(4)
END = Head(4, ROWS[-1][2])


def test_a_chain_is_what_the_standard_library_makes_of_it() -> None:
    previous = GENESIS
    for sequence, text, stored_hash in ROWS:
        fields = json.loads(text)
        assert fields["previous"] == previous
        assert fields["sequence"] == sequence
        assert json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False) == text
        previous = hashlib.sha256(text.encode()).hexdigest()
        assert previous == stored_hash


def test_an_untouched_chain_has_no_problem() -> None:
    assert check_chain(ROWS, vault="v-1") == []
    assert check_chain(iter(ROWS), vault="v-1", head=END, end=END) == []
    assert check_chain([], vault="v-1", head=Head(0, GENESIS), end=Head(0, GENESIS)) == []
    assert check_chain(ROWS, vault="v-1", head=Head(0, "ab" * 32)) == [
        "sequence 0: the head that was kept is of an entry that no ledger has"
    ]
    for length in range(1, 4):  # a head pinned earlier stays good
        assert check_chain(ROWS, vault="v-1", head=Head(length, ROWS[length - 1][2]), end=END) == []


def changed(data: str, position: int, bit: int) -> str | None:
    """The text with one bit of its UTF-8 flipped; None where a database could not hold the result."""
    flipped = bytearray(data.encode())
    flipped[position] ^= 1 << bit
    try:
        return flipped.decode()
    except UnicodeDecodeError:
        return None


@pytest.mark.slow
def test_every_flipped_bit_of_a_row_is_found_where_it_is() -> None:
    rows = chain(3)
    for index, column in ((0, 1), (1, 1), (2, 1), (1, 2), (2, 2)):
        sequence, text, stored_hash = rows[index]
        good = (text, stored_hash)[column - 1]
        for position in range(len(good.encode())):
            for bit in range(8):
                bad = changed(good, position, bit)
                if bad is None:
                    continue
                row = (sequence, bad, stored_hash) if column == 1 else (sequence, text, bad)
                problems = check_chain([*rows[:index], row, *rows[index + 1 :]], vault="v-1")
                assert f"sequence {sequence}: the stored hash is not the hash of the entry" in problems
                assert all(problem.startswith(f"sequence {sequence}: ") for problem in problems)


@given(st.integers(0, 3), st.data())
def test_any_other_text_in_a_row_is_found(index: int, data: st.DataObject) -> None:
    sequence, text, stored_hash = ROWS[index]
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, len(text)))
    bad = text[:start] + data.draw(st.text(max_size=5)) + text[stop:]
    problems = check_chain([*ROWS[:index], (sequence, bad, stored_hash), *ROWS[index + 1 :]], vault="v-1")
    assert bool(problems) == (bad != text)


def rewritten(row: Row, **changes: Any) -> Row:
    """An entry changed by someone who also writes the hash that goes with it."""
    entry = Entry({**json.loads(row[1]), **changes})
    return (row[0], entry.text, entry.hash)


def test_a_change_with_its_hash_is_found_at_the_next_entry_or_by_the_head() -> None:
    inside = [*ROWS[:1], rewritten(ROWS[1], released="B"), *ROWS[2:]]
    assert check_chain(inside, vault="v-1") == [
        "sequence 3: the entry does not follow from the one before it"
    ]
    last = [*ROWS[:3], rewritten(ROWS[3], released="B")]
    assert (
        check_chain(last, vault="v-1") == []
    )  # nothing inside the ledger can tell: this is what heads are for
    assert check_chain(last, vault="v-1", head=END) == [
        "sequence 4: the hash of the entry differs from the head that was kept"
    ]
    assert check_chain(last, vault="v-1", end=END) == [
        "sequence 4: the hash of the entry differs from the head in the vault's state"
    ]


def test_a_chain_rewritten_from_some_entry_on_is_found_by_a_head_beyond_it() -> None:
    rows = list(ROWS)
    previous = rows[0][2]
    for index in (1, 2, 3):
        rows[index] = rewritten(rows[index], previous=previous, code="other")
        previous = rows[index][2]
    assert check_chain(rows, vault="v-1") == []
    for length in (2, 3, 4):
        pinned = Head(length, ROWS[length - 1][2])
        assert check_chain(rows, vault="v-1", head=pinned) == [
            f"sequence {length}: the hash of the entry differs from the head that was kept"
        ]


@pytest.mark.parametrize("length", range(4))
def test_a_cut_end_is_found_by_the_head(length: int) -> None:
    rows = ROWS[:length]
    where = "4" if length == 3 else f"{length + 1} to 4"
    assert check_chain(rows, vault="v-1") == []
    assert check_chain(rows, vault="v-1", head=END) == [
        f"sequence {where}: missing, the ledger is shorter than the head that was kept"
    ]
    assert check_chain(rows, vault="v-1", end=END) == [
        f"sequence {where}: missing, the ledger is shorter than the vault's state records"
    ]


def test_more_entries_than_the_state_knows_are_found() -> None:
    assert check_chain(ROWS, vault="v-1", end=Head(2, ROWS[1][2])) == [
        "sequence 3 to 4: more entries than the vault's state records"
    ]


def test_missing_entries_are_named() -> None:
    assert check_chain([ROWS[0], ROWS[3]], vault="v-1") == ["sequence 2 to 3: missing"]
    assert check_chain(ROWS[1:], vault="v-1") == ["sequence 1: missing"]


def test_rows_out_of_order_or_twice_are_found() -> None:
    assert check_chain([ROWS[0], ROWS[2], ROWS[1], ROWS[3]], vault="v-1") == [
        "sequence 2: missing",
        "sequence 2: out of order, it comes after sequence 3",
        "sequence 3: missing",
    ]
    assert check_chain([ROWS[0], ROWS[1], ROWS[1]], vault="v-1") == [
        "sequence 2: out of order, it comes after sequence 2"
    ]


def test_entries_that_changed_places_are_found() -> None:
    swapped = [ROWS[0], (2, *ROWS[2][1:]), (3, *ROWS[1][1:]), ROWS[3]]
    problems = check_chain(swapped, vault="v-1")
    assert "sequence 2: the entry stored here has sequence 3" in problems
    assert "sequence 3: the entry stored here has sequence 2" in problems


@given(st.permutations(range(4)), st.integers(0, 4))
def test_only_the_whole_chain_in_its_order_passes(order: list[int], length: int) -> None:
    rows = [ROWS[index] for index in order[:length]]
    problems = check_chain(rows, vault="v-1", end=END)
    assert (problems == []) == (rows == ROWS)


def test_a_ledger_of_another_vault_is_found_at_every_entry() -> None:
    assert check_chain(chain(2, vault="v-2"), vault="v-1") == [
        "sequence 1: the entry belongs to another vault",
        "sequence 2: the entry belongs to another vault",
    ]


def test_an_entry_with_its_own_hash_but_not_in_canonical_form_is_found() -> None:
    text = json.dumps(json.loads(ROWS[3][1]), sort_keys=True)
    row = (4, text, hashlib.sha256(text.encode()).hexdigest())
    assert check_chain([*ROWS[:3], row], vault="v-1") == [
        "sequence 4: an entry must be written in canonical JSON"
    ]


def test_a_text_that_is_no_entry_is_found_and_the_rest_is_still_checked() -> None:
    rows = [ROWS[0], (2, "[]", ROWS[1][2]), (3, "x", ROWS[2][2]), (4, ROWS[3][1], GENESIS)]
    problems = check_chain(rows, vault="v-1")
    assert [problem[:11] for problem in problems] == ["sequence 2:"] * 2 + ["sequence 3:"] * 2 + [
        "sequence 4:"
    ]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"schema": "armnesia.ledger/2"}, "schema must be armnesia.ledger/1"),
        ({"sequence": 0}, "sequence must be 1 or more"),
        ({"sequence": True}, "sequence must be 1 or more"),
        ({"sequence": 2.0}, "sequence must be 1 or more"),
        ({"kind": "forgive"}, "kind must be one of init, actions, add_arm"),
        ({"kind": "init"}, "kind must be init at sequence 1 and nowhere else"),
        ({"sequence": 1}, "kind must be init at sequence 1 and nowhere else"),
        ({"sequence": 1, "kind": "init"}, "previous must be 64 zeros"),
        ({"previous": "ab"}, "previous must match"),
        ({"previous": None}, "previous must match"),
        ({"time": "2026-11-15 10:42"}, "time must match"),
        ({"time": TIME + "\n"}, "time must match"),
        ({"vault": ""}, "vault must be text"),
        ({"code": 1}, "code must be text"),
    ],
)
def test_a_wrong_field_is_refused(change: dict[str, Any], complaint: str) -> None:
    good = json.loads(ROWS[1][1])
    assert Entry(good).text == ROWS[1][1]
    with pytest.raises(InvalidInputError, match=f"an entry's {complaint}"):
        Entry({**good, **change})


def test_every_kind_can_be_written_after_the_first() -> None:
    for kind in KINDS[1:]:
        assert Entry.next_after(1, ROWS[0][2], kind=kind, **COMMON).kind == kind


def test_facts_cannot_pass_for_the_entrys_own_fields() -> None:
    for name in ("schema", "sequence", "previous"):
        with pytest.raises(InvalidInputError, match=f"a fact must not be named {name}"):
            Entry.next_after(1, GENESIS, kind="forget", **{**COMMON, name: 5})


def test_an_entry_is_read_back_and_does_not_follow_changes_of_what_made_it() -> None:
    budget = {"epsilon": 1.0}
    entry = Entry.next_after(1, ROWS[0][2], kind="forget", **COMMON, budget=budget)
    budget["epsilon"] = 2.0
    assert entry.fields["budget"] == {"epsilon": 1.0}
    again = Entry.from_text(entry.text)
    assert again == entry
    assert (again.sequence, again.kind, again.vault, again.time) == (2, "forget", "v-1", TIME)
    assert (again.previous, again.head) == (ROWS[0][2], Head(2, entry.hash))
    with pytest.raises(TypeError):
        entry.fields["kind"] = "init"  # type: ignore[index]


@given(st.integers(1, 10**18 - 1), st.binary(min_size=32, max_size=32))
def test_a_head_is_read_back_from_its_text(sequence: int, digest: bytes) -> None:
    head = Head(sequence, digest.hex())
    assert Head.parse(str(head)) == head
    assert Head.parse(f"{sequence:018d}:{digest.hex()}\n") == head


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12",
        "12:",
        "x:" + GENESIS,
        "-1:" + GENESIS,
        "1:" + "AB" * 32,
        "1:" + "ab" * 33,
        "0:" + "ab" * 32,
        "00:" + GENESIS,
    ],
)
def test_what_is_no_head_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="a head must look like"):
        Head.parse(text)


def test_a_head_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="a head must be a number of entries"):
        Head(-1, GENESIS)
    with pytest.raises(InvalidInputError, match="a head must be a number of entries"):
        Head(1, "")


SALTS = st.binary(min_size=16, max_size=16)
REQUESTS = st.dictionaries(st.sampled_from(["users", "records"]), st.lists(st.sampled_from("ab"), max_size=2))


@given(SALTS, SALTS, REQUESTS, REQUESTS)
def test_a_commitment_binds_salt_and_request(
    salt: bytes, other: bytes, request: dict[str, Any], different: dict[str, Any]
) -> None:
    assert (commitment(salt, request) == commitment(other, different)) == (
        (salt, request) == (other, different)
    )


def test_a_commitment_is_a_hash_of_salt_and_text() -> None:
    by_hand = hashlib.sha256(bytes(16) + b'{"users":["ann","bob"]}').hexdigest()
    assert commitment(bytes(16), {"users": ["ann", "bob"]}) == by_hand


def test_a_row_of_other_types_is_a_problem() -> None:
    """SQLite does not keep a column to its type."""
    first = Entry.next_after(
        0, GENESIS, vault="v-1", kind="init", time="2026-11-15T10:42:07.123456Z", code="x"
    )
    row = (1, first.text, first.hash)
    for other in ((None, first.text, first.hash), ("1", first.text, first.hash), (2, b"{}", first.hash)):
        rows: list[Any] = [row, other]
        assert check_chain(rows, vault="v-1") == ["sequence 2: a row has values that armnesia does not write"]
