"""Random histories of an external vault: files are appended, rewritten, joined and counted again."""

import os
import warnings
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from armnesia.core.errors import ArmnesiaError, OutdatedSourceError, VaultError
from armnesia.vault import Ingested, Vault
from tests.vault.machine import VaultMachine, records, user_requests
from tests.vault.plain_vault import Record, Request, write_csv

_TICKS = count(1)


class File(NamedTuple):
    """The rows of a file, and when it was written."""

    rows: list[Record]
    written: int


class ExternalMachine(VaultMachine):
    """The model knows a row by its file and its place there.

    `logs` are the files of each folder; `counted` are those that the vault has counted, None if all of the
    folder has to be counted again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.logs: dict[str, dict[str, File]] = {}
        self.counted: dict[str, dict[str, File] | None] = {}

    def _write(self, folder: str, name: str, rows: list[Record]) -> None:
        """Write a file, at a time of its own: a file system may not tell two moments apart."""
        path = self.folder / folder / name
        path.parent.mkdir(exist_ok=True)
        write_csv(path, rows)
        written = next(_TICKS)
        os.utime(path, ns=(written, written))
        self.logs.setdefault(folder, {})[name] = File(rows, written)

    @rule(batch=records(), data=st.data())
    def ingest(self, batch: list[Record], data: st.DataObject | bool) -> None:
        """Write one more file into a new folder, or into one with the same columns, and count it."""
        folder = new = f"log-{len(self.logs)}"
        if not isinstance(data, bool):
            folder = data.draw(st.sampled_from([new, *self.logs]), label="folder")
        self._write(folder, f"{len(self.logs.get(folder, ())):03}-{next(_TICKS)}.csv", self.fitted(batch))
        self._count(folder)

    def _take_in_folder(self, folder: str, **options: Any) -> Ingested:
        with warnings.catch_warnings():  # rows without ids may be those that were forgotten by theirs
            warnings.filterwarnings("ignore", message="single records were forgotten here")
            return self.vault.ingest(str(self.folder / folder / "*.csv"), **options)

    def _count(self, folder: str) -> None:
        """Ingest a folder, in the vault and in the model."""
        before, held = self.model.statistics(), len(self.model.records)
        would = self._take_in_folder(folder, dry_run=True)
        known = self.counted.get(folder, {})
        changed = known is None or any(self.logs[folder].get(name) != file for name, file in known.items())
        recount = changed or None in self.counted.values()
        if recount:
            rows, left_out = self._recount(folder)
        else:
            assert known is not None
            new = {name: file for name, file in self.logs[folder].items() if name not in known}
            rows, left_out = self._add(folder, new)
            self.counted[folder] = dict(self.logs[folder])
        added = len(self.model.records) - held
        done = self._take_in_folder(folder)
        for result in (would, done):
            assert (result.rows, result.added, result.suppressed) == (rows, added, left_out)
            assert (result.recounted_because is not None) is recount
        if self.model.statistics() != before or (added and not recount):
            self.model.served_by = "learner" if self.model.records else "default"
            self.served = self.stream().decision().action
        assert done.served == self.served

    def _add(self, folder: str, files: dict[str, File]) -> tuple[int, int]:
        """Add files to the model: how many rows they have, and how many are left out."""
        by = self.model.served_by
        left_out = [self.model.ingest(file.rows, f"{folder}/{name}")[2] for name, file in files.items()]
        self.model.served_by = by  # the caller knows better
        return sum(len(file.rows) for file in files.values()), sum(left_out)

    def _recount(self, whole: str | None) -> tuple[int, int]:
        """Count everything again: a folder as it is, or all, and of others what was counted before."""
        self.model.records = {}
        rows = left_out = 0
        for folder in dict.fromkeys([*self.counted, *([] if whole is None else [whole])]):
            known, now = self.counted.get(folder), self.logs[folder]
            as_it_is = folder == whole or whole is None or known is None
            if not as_it_is and known is not None:
                as_it_is = any(now.get(name) != file for name, file in known.items())
            files = dict(now) if as_it_is or known is None else known
            more, out = self._add(folder, files)
            rows, left_out = rows + more, left_out + out
            self.counted[folder] = files
        return rows, left_out

    @precondition(lambda self: self.logs)
    @rule(data=st.data())
    def ingest_again(self, data: st.DataObject) -> None:
        self._count(data.draw(st.sampled_from(sorted(self.logs)), label="folder"))

    @precondition(lambda self: self.logs)
    @rule(data=st.data(), batch=records(), by=st.sampled_from(["ingest", "restore"]), join=st.booleans())
    def rewrite(self, data: st.DataObject, batch: list[Record], by: str, join: bool) -> None:
        """Write other rows into a file, or all rows of a folder into one, and count them again."""
        folder = data.draw(st.sampled_from(sorted(self.logs)), label="folder")
        files = self.logs[folder]
        name = data.draw(st.sampled_from(sorted(files)), label="file")
        if join:
            rows = [record for file in files.values() for record in file.rows]
            for other in [other for other in files if other != name]:
                (self.folder / folder / other).unlink()
                del files[other]
        else:
            rows = self.fitted(batch)
        self._write(folder, name, rows)
        if self.counted[folder] is not None:
            assert self.vault.verify().problems != ()
        if by == "restore":
            self.restore()
        else:
            self._count(folder)

    def ingest_overlapping(self, *args: Any) -> None:
        """No rule: rows of two sources are two rows."""

    def correct(self, *args: Any) -> None:
        """No rule: `rewrite` is."""

    def correct_the_person(self, *args: Any) -> None:
        """No rule: `rewrite` is."""

    @rule(batch=records(), wrong=st.sampled_from([{"action": "Z"}, {"quarters": 5}]))
    def ingest_what_is_wrong(self, batch: list[Record], wrong: dict[str, Any]) -> None:
        """Rows of forgotten people are not looked at: the wrong one is nobody's."""
        path, batch = self.folder / "wrong.csv", self.fitted(batch)
        id_ = "record-wrong" if self.ids else None
        write_csv(Path(path), [*batch, batch[0]._replace(user=None, id=id_, **wrong)])
        with pytest.raises(ArmnesiaError):
            self._take_in(str(path))

    def _forget(self, request: Request) -> None:
        kind, names = request
        all_forgotten = all((kind, name) in self.model.suppressed for name in names)
        if None in self.counted.values() and not all_forgotten:
            self._count_before(request)
        if not self.counted and not all_forgotten:
            for ask in (self.vault.preview, self.vault.forget):
                with pytest.raises(VaultError, match="the vault has counted no source yet"):
                    ask(**{kind: names})  # type: ignore[arg-type]
            return
        super()._forget(request)

    def _count_before(self, request: Request) -> None:
        """A request counts again what has to be counted again; a preview cannot, if anything would change."""
        model, counted = self.model.copy(), dict(self.counted)
        self._recount(None)
        if self.model.statistics() != model.statistics():
            self.model, self.counted = model, counted
            kind, names = request
            with pytest.raises(OutdatedSourceError, match=r"run armnesia ingest"):
                self.vault.preview(**{kind: names})  # type: ignore[arg-type]
            self._count(min(self.logs))

    @rule(names=user_requests)
    def readmit(self, names: list[str]) -> None:
        forgotten = all(("users", name) in self.model.suppressed for name in names)
        request = ("users", tuple(sorted(names)))
        if not forgotten:
            with pytest.raises(VaultError, match="not on the suppression list"):
                self.vault.readmit(users=names)
            return
        self.vault.readmit(users=names)
        self.model.readmit(request)
        self.counted = dict.fromkeys(self.counted)

    @precondition(lambda self: any(kind == "records" for kind, _ in self.model.suppressed))
    @rule(data=st.data())
    def readmit_record(self, data: st.DataObject) -> None:
        forgotten = sorted(name for kind, name in self.model.suppressed if kind == "records")
        name = data.draw(st.sampled_from(forgotten), label="forgotten record")
        self.vault.readmit(records=[name])
        self.model.readmit(("records", (name,)))
        self.counted = dict.fromkeys(self.counted)

    @rule()
    def restore(self) -> None:
        before = self.model.statistics()
        self._recount(None)
        done = Vault.restore(self.place.url, keys=self.place.keys)
        assert (done.replayed, done.as_it_was, done.recounted) == (0, True, True)
        self.model.note("restored")
        if before != self.model.statistics():
            self.model.served_by = "learner" if self.model.records else "default"
            self.served = self.stream().decision().action
