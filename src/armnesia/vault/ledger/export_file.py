"""The file of an export for restoring, read in constant memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from armnesia.core.errors import ArmnesiaError, VaultError
from armnesia.core.files import open_plain
from armnesia.vault.keys import private_files
from armnesia.vault.keys.canonical_json import text_of_plain
from armnesia.vault.keys.json_sections import JsonSections
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.ledger.ledger_copy import EXPORT_SCHEMA as SCHEMA
from armnesia.vault.storage.database import Row


def is_export_of(path: str | Path, vault: str) -> bool:
    """Whether a file is an export of this vault, of either kind."""
    try:
        with open_plain(path) as file:
            found = JsonSections(file, str(path))
            return _values(found, "schema", "vault") == [SCHEMA, vault]
    except (OSError, ArmnesiaError):
        return False


class ExportFile:
    """An export for restoring, read from its file as often as needed, in constant memory."""

    def __init__(self, sections: JsonSections, head: Head) -> None:
        self._sections, self.head = sections, head

    @classmethod
    @contextmanager
    def opened(cls, path: str | Path, all_keys: Keyring) -> Iterator[Self]:
        """Open an export; refuse one of another vault, or one that was changed since."""
        with private_files.opened(path) as file:
            sections = JsonSections(file, str(path))
            schema, vault, version = _values(sections, "schema", "vault", "digest_key")
            if schema != SCHEMA:
                raise VaultError(f"{path} is not an export of a vault")
            if "suppressed" not in sections:
                raise VaultError(
                    f"{path} is an auditor's export, without the suppression list; restoring needs it"
                )
            if vault != all_keys.vault:
                raise VaultError(f"{path} is the export of another vault")
            keyring = all_keys.at(
                digest_version=version if isinstance(version, int) else 0, signing_version=1
            )
            if _values(sections, "seal") != [_seal_on(sections, keyring)]:
                raise VaultError(f"{path} was changed after it was exported")
            yield cls(sections, Head.parse(sections.value("head")))

    def ledger(self) -> Iterator[tuple[int, str, str]]:
        """The rows (sequence, entry, hash) of the ledger."""
        return ((row["sequence"], row["entry"], row["hash"]) for row in self._sections.items("ledger"))

    def certificates(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The numbers of the certificates' entries, and their bodies."""
        return ((row["sequence"], row["body"]) for row in self._sections.items("certificates"))

    def suppressed(self) -> Iterator[Row]:
        """The rows of the suppression list."""
        return self._rows("suppressed", 0)

    def requests(self) -> Iterator[Row]:
        """The rows of the answered requests."""
        return self._rows("requests", 0)

    def trees(self) -> Iterator[Row]:
        """The rows of the hash trees; vaults of schema version 1 had none."""
        return self._rows("trees", 1) if "trees" in self._sections else iter(())

    def _rows(self, name: str, column: int) -> Iterator[Row]:
        for row in self._sections.items(name):
            row[column] = bytes.fromhex(row[column])
            yield tuple(row)


def _values(sections: JsonSections, *names: str) -> list[Any]:
    """The values of these keys, None for those that are not there or are lists."""
    return [
        sections.value(name) if name in sections and not sections.is_list(name) else None for name in names
    ]


def _seal_on(sections: JsonSections, keyring: Keyring) -> str | None:
    """The seal on everything but the seal itself; None if that has no canonical text."""
    sealing = keyring.sealing()
    between = "{"
    try:
        for name in sorted(name for name in sections if name != "seal"):
            sealing.update(f"{between}{text_of_plain(name)}:".encode())
            between = ","
            if sections.is_list(name):
                sealing.update(b"[")
                for number, item in enumerate(sections.items(name)):
                    sealing.update(b"," if number else b"")
                    sealing.update(text_of_plain(item).encode())
                sealing.update(b"]")
            else:
                sealing.update(text_of_plain(sections.value(name)).encode())
    except (ValueError, RecursionError):  # NaN, an unpaired surrogate, or too deep
        return None
    sealing.update(b"}")
    return sealing.hexdigest()
