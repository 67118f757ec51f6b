"""The file of an export: one JSON document in every version, sealed, written and read in constant memory."""

import json
import os
import sqlite3
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import ArmnesiaError, VaultError
from armnesia.vault import Certificate, Vault
from armnesia.vault.keys import json_sections
from armnesia.vault.keys.canonical_json import canonical
from armnesia.vault.ledger.export_file import ExportFile
from armnesia.vault.operations import export, restore
from armnesia.vault.state.connection import open_vault
from tests.databases import Place
from tests.vault.raw_vaults import Snapshot, arms, dumped, filled

KEYS = {"schema", "code", "vault", "configuration", "head", "public_keys", "ledger", "certificates"}
FOR_RESTORE = {"digest_key", "suppressed", "requests", "trees", "seal"}


def with_history(place: Place) -> Vault:
    """A vault whose export has rows in every list, under the second digest key."""
    vault = filled(place)
    vault.forget(users=["ann"])
    vault.forget(records=["r2"])
    vault.certificate(records=["r2"])  # which stores it signed, not as a draft
    vault.forget(users=["cem", "nobody é"])
    vault.readmit(users=["ann"])
    vault.rotate_digest_key()
    vault.rotate_signing_key()
    return vault


def private(path: Path, text: str) -> Path:
    path.touch(0o600)
    path.write_text(text, encoding="utf-8")
    return path


def test_an_export_is_canonical_json_with_a_row_per_line_under_the_same_seal(
    place: Place, tmp_path: Path
) -> None:
    with with_history(place) as vault:
        done = vault.export(tmp_path / "export.json", for_restore=True)
        text = (tmp_path / "export.json").read_text(encoding="utf-8")
        document = json.loads(text)
        assert canonical(document) == text.replace("\n", "")
        assert document.keys() == KEYS | FOR_RESTORE
        sealed = {name: value for name, value in document.items() if name != "seal"}
        assert document["seal"] == vault._connection.all_keys.seal(canonical(sealed)).hex()
        assert (done.entries, done.certificates) == (len(document["ledger"]), len(document["certificates"]))
        lines = text.split("\n")
        for row in document["ledger"] + document["suppressed"] + document["trees"]:
            assert any(line.startswith(canonical(row)) for line in lines)

        assert [row["sequence"] for row in document["ledger"]] == list(range(1, vault.head.sequence + 1))
        assert [row["entry"] for row in document["ledger"]] == [entry.text for entry in vault.ledger()]
        assert [row["sequence"] for row in document["certificates"]] == [2, 3, 4]
        for row in document["certificates"]:
            signed = {"body": row["body"], "signature": row["signature"]}
            assert Certificate.from_dict(signed).verify(vault.public_keys()) == []
        tables = dumped(vault)
        for name, table in (("suppressed", "suppressed"), ("requests", "request")):
            rows = [(bytes.fromhex(digest), *rest) for digest, *rest in document[name]]
            assert sorted(rows, key=repr) == tables[table]
            assert rows == sorted(rows)
        assert [(n, bytes.fromhex(leaves)) for n, leaves in document["trees"]] == tables["tree"]

        vault.export(tmp_path / "audit.json")
        assert json.loads((tmp_path / "audit.json").read_text(encoding="utf-8")).keys() == KEYS


def test_a_vault_without_forgotten_people_is_exported_too(place: Place, tmp_path: Path) -> None:
    with filled(place) as vault:
        vault.export(tmp_path / "export.json", for_restore=True)
        with ExportFile.opened(tmp_path / "export.json", vault._connection.all_keys) as found:
            assert [list(rows()) for rows in (found.suppressed, found.requests, found.trees)] == [[], [], []]
            assert [sequence for sequence, *_ in found.ledger()] == [1]


def _sorted_backwards(document: dict[str, Any]) -> str:
    return json.dumps(dict(sorted(document.items(), reverse=True)))


LAYOUTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "on one line, as earlier versions wrote it": lambda document: canonical(document) + "\n",
    "indented": lambda document: json.dumps(document, indent=4),
    "with its keys in another order": _sorted_backwards,
    "in ASCII": lambda document: json.dumps(document, ensure_ascii=True),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("chunk", [64, 1 << 18])
def test_an_export_is_read_in_every_layout(
    sqlite_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, chunk: int
) -> None:
    monkeypatch.setattr(json_sections, "_CHUNK", chunk)
    vault = filled(sqlite_place)
    backup = Snapshot(sqlite_place, vault, tmp_path)
    vault.close()
    with sqlite_place.open() as vault:
        vault.forget(users=["ann"])
        vault.forget(users=["cem", "nobody é"])
        vault.export(tmp_path / "export.json", for_restore=True)
        expected, statistics = dumped(vault), arms(vault)
    document = json.loads((tmp_path / "export.json").read_text(encoding="utf-8"))
    (tmp_path / "export.json").write_text(LAYOUTS[layout](document), encoding="utf-8")
    backup.put_back()
    done = Vault.restore(sqlite_place.url, tmp_path / "export.json", keys=sqlite_place.keys)
    assert done.replayed == 2
    with sqlite_place.open() as vault:
        assert vault.verify().problems == ()
        restored = dumped(vault)
        for table in ("record", "suppressed", "request", "tree"):
            assert restored[table] == expected[table]
        assert arms(vault) == statistics
        assert restored["ledger"][:3] == expected["ledger"]


CHANGES: dict[str, Callable[[str], str]] = {
    "a digit of the seal": lambda text: text.replace('"seal":"', '"seal":"0', 1),
    "a digest of the suppression list": lambda text: text.replace(
        '"suppressed":[\n["', '"suppressed":[\n["00'
    ),
    "a row that is there twice": lambda text: text.replace('"ledger":[\n', '"ledger":[\n{},', 1),
    "a key that is there twice": lambda text: text.replace('"trees":[', '"trees":[],"trees":[', 1),
    "another key": lambda text: text.replace('"vault":', '"unknown":[1],"vault":', 1),
    "a list in the place of a value": lambda text: text.replace('"head":', '"head":[],"old":', 1),
    "a value in the place of a list": lambda text: text.replace(
        '"suppressed":[', '"suppressed":1,"old":[', 1
    ),
    "a number that JSON does not have": lambda text: text.replace('"ledger":[', '"ledger":[NaN,', 1),
    "half of a letter": lambda text: text.replace('"ledger":[', '"ledger":["\\ud800",', 1),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_export_is_refused_in_one_sentence(sqlite_place: Place, tmp_path: Path, what: str) -> None:
    with filled(sqlite_place) as vault:
        vault.forget(users=["ann"])
        vault.export(tmp_path / "export.json", for_restore=True)
    text = (tmp_path / "export.json").read_text(encoding="utf-8")
    changed = CHANGES[what](text)
    assert changed != text
    (tmp_path / "export.json").write_text(changed, encoding="utf-8")
    with pytest.raises(ArmnesiaError, match=r"was changed after it was exported|must name every key once"):
        Vault.restore(sqlite_place.url, tmp_path / "export.json", keys=sqlite_place.keys)


def test_an_export_that_is_cut_off_anywhere_is_refused(sqlite_place: Place, tmp_path: Path) -> None:
    with filled(sqlite_place) as vault:
        vault.forget(users=["ann"])
        vault.export(tmp_path / "export.json", for_restore=True)
        whole = (tmp_path / "export.json").read_bytes()
        keyring = vault._connection.all_keys
    cut = private(tmp_path / "cut.json", "")
    for end in range(0, len(whole) - 2, 89):
        cut.write_bytes(whole[:end])
        with pytest.raises(ArmnesiaError, match=r"invalid or truncated|is not an export"):
            ExportFile.opened(cut, keyring).__enter__()


def test_an_export_that_changes_while_it_is_restored_changes_nothing(
    sqlite_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = filled(sqlite_place)
    backup = Snapshot(sqlite_place, vault, tmp_path)
    vault.forget(users=["ann"])
    path = tmp_path / "export.json"
    vault.export(path, for_restore=True)
    vault.close()
    backup.put_back()
    bring_forward = restore._bring_forward

    def change(*arguments: Any) -> Any:
        text = path.read_text(encoding="utf-8")
        start = text.index('"suppressed":[\n["') + len('"suppressed":[\n["')
        with path.open("r+b") as file:  # in place, after its seal was checked
            file.seek(len(text[:start].encode()))
            file.write(b"00000000")
        return bring_forward(*arguments)

    monkeypatch.setattr(restore, "_bring_forward", change)
    before = _content(sqlite_place.path)
    with pytest.raises(VaultError, match=r"export\.json was changed while it was read"):
        Vault.restore(sqlite_place.url, path, keys=sqlite_place.keys)
    assert _content(sqlite_place.path) == before


def _content(path: Path) -> list[str]:
    """All rows; the file also has a mark that says whether its unused space was looked at."""
    with closing(sqlite3.connect(path)) as database:
        return list(database.iterdump())


def test_a_file_that_is_no_export_is_refused_before_anything_is_signed(
    sqlite_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(sqlite_place) as vault:
        monkeypatch.setattr(export, "_write_sections", None)
        for text in ("mine", "{}", '{"schema":"armnesia.export/1"}', '{"schema":["armnesia.export/1"]}'):
            private(tmp_path / "file", text)
            with pytest.raises(VaultError, match="exists already and is no export of this vault"):
                vault.export(tmp_path / "file")
            assert (tmp_path / "file").read_text(encoding="utf-8") == text


def test_a_failed_export_leaves_the_older_one(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(place) as vault:
        vault.export(tmp_path / "export.json")
        before = (tmp_path / "export.json").read_bytes()
        vault.forget(users=["ann"])

        def fail(*_: Any) -> None:
            raise OSError(28, os.strerror(28))

        monkeypatch.setattr(export, "_certificates", fail)
        with pytest.raises(VaultError, match="cannot be written: No space left on device"):
            vault.export(tmp_path / "export.json")
        monkeypatch.undo()
        assert (tmp_path / "export.json").read_bytes() == before
        assert [path.name for path in tmp_path.iterdir() if path.suffix == ".new"] == []
        assert vault.verify().holds


def peak_of(work: Callable[[], object]) -> int:
    """The peak memory of Python's own objects, in bytes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_ledger(
    sqlite_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, an entry with its certificate took 18 kB in an export, and as much in a restore."""
    monkeypatch.setattr(json_sections, "_CHUNK", 1 << 13)
    monkeypatch.setattr(restore, "_AT_ONCE", 10)
    vault = filled(sqlite_place)
    backup = Snapshot(sqlite_place, vault, tmp_path)
    path, peaks = tmp_path / "export.json", []
    pin = sqlite_place.keys.with_name(f"{sqlite_place.keys.name}.head")

    def restored() -> int:
        backup.put_back()
        pin.write_bytes(pinned)
        connection = open_vault(sqlite_place.url, sqlite_place.keys, accept="any")
        with closing(connection.database), ExportFile.opened(path, connection.all_keys) as opened:
            return peak_of(lambda: restore.restore(connection, opened))

    for length in (30, 90):
        for number in range(vault.head.sequence, length):
            vault.forget(users=[f"stranger-{number}"])
        # The first time, both load what they need once.
        exporting = [peak_of(partial(vault.export, path, for_restore=True)) for _ in range(2)][1]
        vault.close()
        current, pinned = sqlite_place.path.read_bytes(), pin.read_bytes()
        peaks.append((exporting, [restored() for _ in range(2)][1]))
        sqlite_place.path.write_bytes(current)
        pin.write_bytes(pinned)
        vault = sqlite_place.open()
    vault.close()
    growth = [long - short for short, long in zip(*peaks, strict=True)]
    assert max(growth) < 60 * 2000, growth
