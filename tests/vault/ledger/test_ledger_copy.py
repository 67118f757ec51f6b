"""The ledger as an auditor has it: read from both kinds of export, and refused if anything is wrong."""

import json
import stat
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.vault import Head, LedgerCopy, Vault
from armnesia.vault.ledger.ledger import GENESIS, Entry
from tests.databases import Place
from tests.vault.raw_vaults import filled


@pytest.fixture
def vault(sqlite_place: Place) -> Iterator[Vault]:
    with filled(sqlite_place) as vault:
        vault.forget(users=["ann"])
        vault.rotate_signing_key()
        vault.forget(users=["bob"])
        yield vault


def lines_of(vault: Vault, path: Path) -> Path:
    """What `armnesia ledger --export` writes."""
    vault.ledger().save(path)
    assert path.read_text(encoding="utf-8").splitlines() == [entry.text for entry in vault.ledger()]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(VaultError, match="exists already"):
        vault.ledger().save(path)
    return path


def test_both_exports_are_the_same_ledger(vault: Vault, tmp_path: Path) -> None:
    vault.export(tmp_path / "export.json")
    vault.export(tmp_path / "restore.json", for_restore=True)
    document = json.loads((tmp_path / "export.json").read_text(encoding="utf-8"))
    (tmp_path / "pretty.json").write_text(json.dumps(document, indent=2), encoding="utf-8")
    found = [
        LedgerCopy.read(path)
        for path in (
            lines_of(vault, tmp_path / "ledger.jsonl"),
            *(tmp_path / f"{name}.json" for name in ("export", "restore", "pretty")),
        )
    ]
    assert found[0] == found[1] == found[2] == found[3]
    assert found[0].head == vault.head
    assert found[0].keys == vault.public_keys()
    assert found[0].confirmed == {vault.public_key()}
    for entry in vault.ledger():
        assert found[0].has(entry.head)
        assert not found[0].has(Head(entry.sequence, "ab" * 32))
    assert not found[0].has(Head(0, GENESIS))
    assert not found[0].has(Head(9, vault.head.hash))


def changed_export(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    rows = document["ledger"]
    first = {**rows[0], "entry": rows[0]["entry"].replace('"A"', '"a"')}
    yield "the stored hash is not the hash of the entry", {"ledger": [first, *rows[1:]]}
    yield "sequence 2: missing", {"ledger": [rows[0], *rows[2:]]}
    yield "out of order", {"ledger": [*rows[:3], rows[1], rows[3]]}
    yield "its last entry is not the head that the export names", {"ledger": rows[:3]}
    yield "its last entry is not the head that the export names", {"head": f"4:{'ab' * 32}"}
    yield "sequence 1: an entry must be", {"ledger": [{**rows[0], "entry": "[]"}, *rows[1:]]}
    yield (
        "sequence 3: an entry must be valid JSON",
        {"ledger": [*rows[:2], {**rows[2], "entry": "{"}, rows[3]]},
    )


def test_a_changed_export_cannot_be_used(vault: Vault, tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    vault.export(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    for problem, changes in changed_export(document):
        path.write_text(json.dumps({**document, **changes}), encoding="utf-8")
        with pytest.raises(VaultError, match=f"the ledger given cannot be used: .*{problem}"):
            LedgerCopy.read(path)


def test_changed_lines_cannot_be_used(vault: Vault, tmp_path: Path) -> None:
    path = lines_of(vault, tmp_path / "ledger.jsonl")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    for changed, problem in (
        ([lines[0], lines[2]], "the entry stored here has sequence 3"),
        ([*lines, "\n"], "sequence 5: an entry must be valid JSON"),
        ([lines[0], lines[1].replace('"released":"', '"released":"x'), *lines[2:]], "does not follow"),
        ([lines[0], " " + lines[1], *lines[2:]], "must be written in canonical JSON"),
    ):
        path.write_text("".join(changed), encoding="utf-8")
        with pytest.raises(VaultError, match=problem):
            LedgerCopy.read(path)
    path.write_text("".join(lines[:3]), encoding="utf-8")  # a beginning is a ledger too, an older one
    assert LedgerCopy.read(path).head.sequence == 3


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[]", b"\xff\xfe", b"{", b'{"schema": "armnesia.export/1"}', b"action,reward\nA,1\n"]
    + [b'{"ledger": %b, "schema": "armnesia.export/1"}' % part for part in (b"[]", b"[1]", b'[{"entry": 5}]')]
    + [b'{"ledger": 5, "schema": "armnesia.export/1"}', b'{"schema": "armnesia.keys/1", "ledger": []}'],
)
def test_what_is_no_ledger_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"is no export of a vault and no ledger|must be valid JSON"):
        LedgerCopy.read(tmp_path / "file")
    with pytest.raises(InvalidInputError, match="cannot be read: Is a directory"):
        LedgerCopy.read(tmp_path)


def test_a_ledger_without_entries_or_keys_cannot_be_used() -> None:
    with pytest.raises(VaultError, match="it has no entries"):
        LedgerCopy.of([])
    facts: dict[str, Any] = {"vault": "v-1", "time": "2026-11-15T10:42:07.123456Z", "code": "0.1.0"}
    first = Entry.next_after(0, GENESIS, kind="init", **facts)
    with pytest.raises(VaultError, match="a public key must be 64 hexadecimal digits"):
        LedgerCopy.of([(1, first.text, first.hash)])


@pytest.mark.slow
def test_the_certificates_of_an_export_are_not_held_in_memory(vault: Vault, tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    vault.export(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    document["certificates"] *= 3_000
    path.write_text(json.dumps(document), encoding="utf-8")
    size = path.stat().st_size
    assert size > 12_000_000
    tracemalloc.start()
    try:
        LedgerCopy.read(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size / 2
