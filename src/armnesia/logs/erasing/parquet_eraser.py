"""Erasing rows of Parquet files: the files are written again beside the old ones, and take their places."""

import os
import tempfile
from importlib.util import find_spec

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.core.errors import InvalidInputError, InvalidLogError, UnsupportedError
from armnesia.core.files import may_write, stamp_if_there, sync_folder
from armnesia.core.messages import counted
from armnesia.logs.columns import Columns
from armnesia.logs.erasing.eraser import BLOCKS, OTHER_COLUMNS, not_applied, rows_changed, rows_left
from armnesia.logs.erasing.file_swaps import (
    changed,
    check_swap,
    copy_access,
    is_done,
    put_in_place,
    remove,
    remove_old,
    remove_prepared,
    reserve,
    stamp_of_synced,
)
from armnesia.logs.erasing.names_in_files import checksum, names_in
from armnesia.logs.erasing.other_files import named_in_paths, other_parquet_files
from armnesia.logs.erasing.parquet_dictionaries import DictionaryPages, named_in_dictionaries
from armnesia.logs.erasing.parquet_metadata import describing_files, has_statistics, named_in_metadata
from armnesia.logs.erasing.parquet_rewriting import write_without, write_without_rows
from armnesia.logs.erasing.people import People
from armnesia.logs.erasing.plan import Erasure, ErasurePlan, FileSwap, SourceState
from armnesia.logs.erasing.staged_files import leftovers, staged_path
from armnesia.logs.files.duckdb_values import FileColumn
from armnesia.logs.files.folders import kind_of_table
from armnesia.logs.files.formats import LogFiles
from armnesia.logs.files.label_lookup import look_up
from armnesia.logs.files.partitions import Partitions
from armnesia.logs.files.source import FileSource

_KIND = "parquet"
_REMAINS = (
    OTHER_COLUMNS,
    BLOCKS,
    "copies of the files remain: snapshots of the file system, versions of an object store, backups",
)
_TOLD = "statistics of folders (files _metadata and _common_metadata) may name people; remove them"


class ParquetEraser:
    """Parquet files of a path or glob."""

    def __init__(self, source: FileSource) -> None:
        if source.files.format.delimiter is not None:
            raise UnsupportedError(
                "rows of CSV files cannot be erased: they cannot be written again without change; give"
                " Parquet files, or a table"
            )
        self._source = source
        self._location = str(source.description["location"])
        self._refuse_named_folders()

    def check_rewritable(self) -> None:
        """Write one of the files that have the same columns, without rows, to a temporary folder.

        Without pyarrow nothing can be told of that, and nothing can be erased either. Files that could not be
        replaced, because of other names, statistics beside them or missing rights, are refused at once.
        """
        one_of: dict[tuple[str, str], tuple[str, str]] = {}
        for path in self._source.files.paths:
            real = _real_path(path)
            one_of[os.path.dirname(path), os.path.dirname(real)] = path, real
        for path, real in one_of.values():  # one of each pair of folders: that of the link, and of the file
            _refuse_described(path, real)
            if not may_write(os.path.dirname(real)):
                raise UnsupportedError(
                    f"rows of {path!r} cannot be erased: this user may not write to its folder"
                )
        if find_spec("pyarrow") is None:
            return
        files = self._source.files.parts or (self._source.files,)
        tried = {tuple(zip(file.stored_names, file.columns, strict=False)): file for file in reversed(files)}
        with tempfile.TemporaryDirectory(prefix="armnesia-") as folder:
            for file in tried.values():
                write_without_rows(file.paths[0], os.path.join(folder, "tried.parquet"))

    def check_named_by(self, role: str) -> None:
        """Nothing can be told by the type: rows are found as they are read."""

    def plan(self, people: People) -> ErasurePlan | None:
        """Write the files that name these people again, beside them, and compare them with the old ones."""
        self._remove_leftovers()
        names = names_in(self._source, people)
        pages = DictionaryPages(self._source, people)
        names |= pages.names()
        found = self._positions(people.role, names, pages.paths_with(names))
        if not found:
            return None
        plan = ErasurePlan.new(_KIND, self._location)
        swaps: list[FileSwap] = []
        try:
            for part, positions in found.items():
                swaps.append(self._staged(part, positions, people.role, names, plan.token))
            for folder in {os.path.dirname(swap.staged) for swap in swaps}:
                sync_folder(folder)
        except BaseException:
            self._remove_leftovers()
            raise
        return ErasurePlan(_KIND, self._location, plan.token, files=tuple(swaps))

    def finish(self, plan: ErasurePlan, people: People) -> None:
        """Let the new files take the places of the old ones, each in one step."""
        plan.check(_KIND, self._location)
        for swap in plan.files:  # all before the first is put in place
            check_swap(swap)
        for swap in plan.files:
            if not is_done(swap):
                check_swap(swap)  # once more: the others may have taken long
                put_in_place(swap)
            remove_old(swap)

    def apply(self, plan: ErasurePlan, people: People) -> Erasure:
        """Finish the plan; refuse rows of the people that came in since."""
        self.finish(plan, people)
        source = self._reopened()
        if names_in(source, people):
            raise rows_left(self._location)
        return _outcome(source, people)

    def empty_plan(self) -> ErasurePlan:
        """A plan that deletes no rows."""
        return ErasurePlan.new(_KIND, self._location)

    def with_removals(self, plan: ErasurePlan) -> ErasurePlan:
        """Nothing has to be noted."""
        return plan

    def discard(self, plan: ErasurePlan) -> None:
        """Remove the new files that have not taken their places."""
        plan.check(_KIND, self._location)
        for swap in plan.files:
            remove_prepared(swap)

    def undo(self, plan: ErasurePlan) -> None:
        """Remove the new files, unless some have taken their places already: the old ones are gone then."""
        plan.check(_KIND, self._location)
        replaced = sum(map(is_done, plan.files))
        if replaced:
            raise InvalidInputError(
                f"an erasure of which files were replaced cannot be undone; {replaced} of"
                f" {counted(len(plan.files), 'file')} were: apply it to finish it"
            )
        self.discard(plan)

    def purge(self, plan: ErasurePlan, people: People, *, ignore_retention: bool = False) -> Erasure:
        """Nothing is left to do: files have no earlier versions."""
        plan.check(_KIND, self._location)
        source = self._reopened()
        if names_in(source, people):
            raise not_applied()
        return _outcome(source, people)

    def _reopened(self) -> FileSource:
        columns = Columns(**self._source.description["columns"])
        return FileSource(self._location, columns, table=None, whole_rows=False)

    def _positions(self, role: str, names: frozenset[str], others: set[str]) -> dict[int, IntArray]:
        """By the place of a file: which of its rows have the names; others have them without rows."""
        if not names:
            return {}
        places = {path: place for place, path in enumerate(self._source.files.paths)}
        found = {places[path]: np.array([], np.int64) for path in others}
        wanted = look_up(self._source.named_column(role), names)
        sql = (
            f"SELECT file_index, list(file_row_number) FROM {self._source.files.table}"
            f" WHERE {wanted.condition} GROUP BY file_index"
        )
        for part, positions in self._source.files.query(sql, **wanted.parameters):
            found[int(part)] = np.array(sorted(positions), np.int64)
        return dict(sorted(found.items()))

    def _staged(
        self, place: int, positions: IntArray, role: str, names: frozenset[str], token: str
    ) -> FileSwap:
        """Write one file again, and check that it has the other rows, in their order, and nothing else."""
        part = self._part(place)
        path = _real_path(part.paths[0])
        _refuse_described(part.paths[0], path)
        old, staged = stamp_if_there(path), staged_path(path, token)
        reserve(staged)
        write_without(path, staged, positions)
        copy_access(path, staged)
        stamp = stamp_of_synced(staged)
        new = LogFiles((staged,), part.format, part.columns, part.n_rows - len(positions), (stamp,))
        left_out = look_up(_column_in(part, self._source, role), names)
        if checksum(part, left_out, ordered=True) != checksum(new, ordered=True):
            raise rows_changed(self._location, "nothing was changed")
        if old is None or stamp_if_there(path) != old:
            raise changed(path)
        return FileSwap(path, old, staged, new.stamps[0])

    def _refuse_named_folders(self) -> None:
        named = self._source.columns.named()
        in_paths = set(map(str.casefold, self._source.columns_in_paths))  # many readers ignore case
        for column in (named[role] for role in ("user", "id") if role in named):
            if column.casefold() in in_paths:
                raise UnsupportedError(
                    f"rows of {self._location!r} cannot be erased: the files are partitioned by {column!r},"
                    " so that names of folders name people"
                )

    def _part(self, place: int) -> LogFiles:
        """One file, with the columns that are in it."""
        files = self._source.files
        return (files.parts[place] if files.parts else files).with_partitions(Partitions())

    def _remove_leftovers(self) -> None:
        """Remove what an erasure left that was interrupted before its plan was stored."""
        for path in leftovers(self._location, self._source.files.paths):
            remove(path)


def _column_in(part: LogFiles, source: FileSource, role: str) -> FileColumn:
    """The column of a role in a single file, where it may stand at another place."""
    names, name = [name for name, _ in part.columns], source.columns.named()[role]
    place = names.index(name)
    return FileColumn(
        f"c{place}", part.columns[place][1], is_text=False, signed_bounds=name in part.signed_bounds
    )


def _real_path(path: str) -> str:
    """The file itself, not a link to it; refuse one of which another name would keep the rows."""
    real = os.path.realpath(path)
    if os.stat(real).st_nlink > 1:
        raise InvalidLogError(
            f"rows of {path!r} cannot be erased: the file has other names (hard links), which would keep them"
        )
    return real


def _refuse_described(given: str, path: str) -> None:
    """Refuse a file whose content other files describe: a table of a lake, or statistics of a folder."""
    for other in filter(has_statistics, describing_files([given])):
        raise InvalidLogError(
            f"rows of {path!r} cannot be erased: the file {other!r} has statistics of all files of its"
            " folder, which may name people; remove it"
        )
    folder = os.path.dirname(path)
    while True:
        kind = kind_of_table(folder)
        if kind is not None:
            raise InvalidLogError(
                f"rows of {path!r} cannot be erased: the file belongs to {kind} table, which would lose it;"
                " erase them from the table"
            )
        if os.path.dirname(folder) == folder:
            return
        folder = os.path.dirname(folder)


def _outcome(source: FileSource, people: People) -> Erasure:
    """Say what remains; files have no earlier versions, but may name people outside of their rows."""
    describing = describing_files(source.files.paths)
    told = list(filter(has_statistics, describing))
    named = [_TOLD] if told else []
    named += named_in_metadata(source.files, people, sorted({*describing} - {*told}))
    named += named_in_dictionaries(source, people)
    location = str(source.description["location"])
    named += named_in_paths(location, source.files.paths, people)
    named += other_parquet_files(location, source.files.paths)
    state = SourceState.LOGICALLY_DELETED if named else SourceState.PURGED
    return Erasure(state, remains=(*named, *_REMAINS))
