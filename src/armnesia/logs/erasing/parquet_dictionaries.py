"""Names in the dictionary pages of Parquet files, which may be there although no row has them.

A column of categories is written with all of them into each file, whatever rows it has. Readers do not show
such names, but the bytes of the file have them, and pyarrow hands them out. DuckDB reads the pages, so that
values of every type have the names that they have in rows: a dictionary page has the form of a page of rows,
and with another header and footer around it, it is a file of its own. Only these pages are read.
"""

import glob
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from armnesia.core.errors import InvalidLogError
from armnesia.logs.erasing.compact_thrift import (
    BINARY,
    I32,
    I64,
    LIST,
    STRUCT,
    CompactReader,
    Struct,
    written_struct,
)
from armnesia.logs.erasing.names_in_files import condition_of
from armnesia.logs.erasing.people import People
from armnesia.logs.files.duckdb_engine import query, stream
from armnesia.logs.files.duckdb_values import FileColumn
from armnesia.logs.files.formats import PARQUET_COLUMNS
from armnesia.logs.files.label_lookup import look_up
from armnesia.logs.files.source import FileSource
from armnesia.logs.lakes.storage import RemoteStorage, open_data_file
from armnesia.logs.limits import CHUNK

_NAMED = "dictionary pages of files name people whom none of their rows has; write the files again"
_MAGIC = b"PAR1"
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_PLAIN, _PLAIN_DICTIONARY, _RLE = 0, 2, 3
_REQUIRED = 0
_LONGEST_HEADER = 1 << 10
"""More bytes than the header of a dictionary page has, which consists of numbers."""
_CHUNKS = (
    "SELECT file_name, column_id, compression, dictionary_page_offset, data_page_offset,"
    " total_compressed_size FROM parquet_metadata($files) WHERE path_in_schema = $column"
    " ORDER BY file_name, row_group_id"
)
_TABLE = "read_parquet($dictionaries, can_have_nan = true, hive_partitioning = false) AS d(c0)"


class _Chunk(NamedTuple):
    """The column in one row group."""

    place: int
    """Of the column, among all columns that are not nested further."""
    codec: str
    dictionary: int | None
    data: int
    size: int


class _Page(NamedTuple):
    """A dictionary page: where it is after its header, its sizes, and how many values it has."""

    place: int
    codec: str
    start: int
    size: int
    uncompressed: int
    n_values: int


@dataclass(frozen=True)
class _Group:
    """Files in which the column has one name and type, and a file for DuckDB of the dictionaries of each."""

    paths: tuple[str, ...]
    locations: list[str]
    column: FileColumn


def named_in_dictionaries(source: FileSource, people: People) -> Iterator[str]:
    """A sentence if dictionary pages name people; there must be no rows of these people."""
    if DictionaryPages(source, people).names():
        yield _NAMED


class DictionaryPages:
    """The dictionary pages of the column that names people, in all files of a source."""

    def __init__(self, source: FileSource, people: People) -> None:
        self._source, self._people = source, people
        name = people.check_column(source)
        self._files: dict[str, _SplicedPieces] = {}
        self._storage = RemoteStorage(lambda path: _SplicedFile(path, self._files[path]))
        groups = (self._group(stored, paths) for stored, paths in source.files.stored_as(name))
        self._groups = [group for group in groups if group is not None]

    def names(self) -> frozenset[str]:
        """The names of these people, as they are spelled; without those that rows of the source have.

        If the people are given by their names, those of rows may be among them.
        """
        return self._people.among_all(labels for group in self._groups for labels in self._labels(group))

    def paths_with(self, names: frozenset[str]) -> set[str]:
        """The files whose dictionary pages have one of these names."""
        found: set[str] = set()
        for group in self._groups:
            wanted = look_up(group.column, names)
            sql = f"SELECT DISTINCT file_index FROM {_TABLE} WHERE {wanted.condition}"
            rows = self._ask(sql, {"dictionaries": group.locations, **wanted.parameters})
            found |= {group.paths[int(place)] for (place,) in rows}
        return found

    def _labels(self, group: _Group) -> Iterator[list[str]]:
        """The names in the dictionaries of a group that may be of these people."""
        files, column = self._source.files, self._source.named_column(self._people.role)
        wanted, pages = condition_of(group.column, self._people.selection), _TABLE
        if self._people.selection is None:  # recognising a name takes long, and those of rows were looked at
            pages += f" ANTI JOIN (SELECT {column.name} AS known FROM {files.table}) AS r ON d.c0 = r.known"
        distinct = f"SELECT DISTINCT c0 FROM {pages} WHERE {wanted.condition}"
        sql = f"SELECT {group.column.text()} FROM ({distinct})"
        parameters = {"dictionaries": group.locations, **wanted.parameters}
        if self._people.selection is None:
            chunks = files.stream(sql, CHUNK, in_order=False, **parameters)
        else:
            chunks = stream(sql, parameters, size=CHUNK, shown=files.shown, format_name=files.format.name)
        for chunk in chunks:
            yield [label for (label,) in chunk if label is not None]

    def _group(self, stored_name: str, paths: Sequence[str]) -> _Group | None:
        """Look for dictionaries in files; None if none of them has any."""
        files, chunks = self._source.files, dict[str, list[_Chunk]]()
        files.check_unchanged()
        size_of = {path: stamp.size for path, stamp in zip(files.paths, files.stamps, strict=True)}
        parameters = {"files": list(map(glob.escape, paths)), "column": stored_name}
        for path, *rest in self._ask(_CHUNKS, parameters):
            chunks.setdefault(path, []).append(_Chunk(*rest))
        having = []
        for path in paths:
            try:
                with _DataFile(path) as file:
                    pages = [page for chunk in chunks.get(path, ()) if (page := file.dictionary_of(chunk))]
                    if pages:
                        self._files[path] = _spliced(*file.column(stored_name, size_of[path]), pages)
                        having.append(path)
            except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
                raise InvalidLogError(
                    f"the dictionary of column {stored_name!r} in {path!r} cannot be read"
                    f" ({type(error).__name__}): whether it names people is not known"
                ) from None
        if not having:
            return None
        locations = [self._storage.location_of(path, self._files[path].size) for path in having]
        ((_, type_, *_),) = self._ask(PARQUET_COLUMNS, {"files": locations[:1]})
        return _Group(tuple(having), locations, FileColumn("c0", type_, is_text=False))

    def _ask(self, sql: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        files = self._source.files
        return query(sql, parameters, shown=files.shown, format_name=files.format.name)


class _DataFile:
    """A Parquet file of which a few bytes are read; raises a ValueError if they are not what is expected."""

    def __init__(self, path: str) -> None:
        self._file = open_data_file(path)

    def __enter__(self) -> "_DataFile":
        return self

    def __exit__(self, *_: object) -> None:
        close = getattr(self._file, "close", None)
        if close is not None:
            close()

    def dictionary_of(self, chunk: _Chunk) -> _Page | None:
        """The dictionary of a column in a row group: its first page, if it is one."""
        starts = [start for start in (chunk.dictionary, chunk.data) if start]
        if not chunk.size or not starts:
            return None
        start = min(starts)  # some writers name the first page of rows only, and mean the dictionary
        reader = CompactReader(self.read(start, min(_LONGEST_HEADER, chunk.size)))
        if reader.struct(through=1)[1][1] != _DICTIONARY_PAGE:
            return None
        reader.position = 0
        header = reader.struct()
        uncompressed, size, dictionary = header[2][1], header[3][1], header[7][1]
        if dictionary[2][1] not in (_PLAIN, _PLAIN_DICTIONARY) or not 0 <= size <= chunk.size:
            raise ValueError("a dictionary page has another form than is known")
        if not dictionary[1][1]:
            return None
        return _Page(chunk.place, chunk.codec, start + reader.position, size, uncompressed, dictionary[1][1])

    def column(self, name: str, size: int) -> tuple[int, Struct]:
        """What a file of this size says of a column that is not nested, and its place among all columns."""
        ending = self.read(size - 8, 8)
        length = int.from_bytes(ending[:4], "little")
        _, elements = CompactReader(self.read(size - 8 - length, length)).struct(through=2)[2][1]
        place, nested = 0, 0  # how many elements are still to come that are inside of another
        for element in elements[1:]:
            n_children = element[5][1] if 5 in element else 0
            if not nested and not n_children and element[4][1] == name.encode():
                return place, element
            nested += n_children - bool(nested)
            place += not n_children
        raise ValueError("a file has other columns than it says")

    def read(self, start: int, size: int) -> bytes:
        """Read bytes at a place."""
        self._file.seek(start)
        found = bytes(self._file.read(size))
        if start < 0 or len(found) != size:
            raise ValueError("a file ends too early")
        return found


@dataclass(frozen=True)
class _SplicedPieces:
    """What a file consists of, in order: bytes, or the place and size of bytes in another file."""

    pieces: tuple[bytes | tuple[int, int], ...]
    ends: tuple[int, ...]

    @classmethod
    def of(cls, pieces: Sequence[bytes | tuple[int, int]]) -> "_SplicedPieces":
        return cls(tuple(pieces), tuple(accumulate(map(_size_of, pieces))))

    @property
    def size(self) -> int:
        return self.ends[-1]


def _size_of(piece: bytes | tuple[int, int]) -> int:
    return len(piece) if isinstance(piece, bytes) else piece[1]


def _spliced(place: int, column: Struct, pages: Sequence[_Page]) -> _SplicedPieces:
    """A Parquet file with a row for each value of some dictionaries, each of which is a row group."""
    pieces: list[bytes | tuple[int, int]] = [_MAGIC]
    groups: list[Struct] = []
    position, n_rows = len(_MAGIC), 0
    for page in (page for page in pages if page.place == place):  # a path may be like another's name
        about: Struct = {n: (I32, v) for n, v in enumerate((page.n_values, _PLAIN, _RLE, _RLE), start=1)}
        sizes: Struct = {1: (I32, _DATA_PAGE), 2: (I32, page.uncompressed), 3: (I32, page.size)}
        header = written_struct({**sizes, 5: (STRUCT, about)})
        chunk: Struct = {
            1: column[1],
            2: (LIST, (I32, [_PLAIN, _RLE])),
            3: (LIST, (BINARY, [b"label"])),
            4: (I32, _CODECS.index(page.codec)),
            5: (I64, page.n_values),
            6: (I64, len(header) + page.uncompressed),
            7: (I64, len(header) + page.size),
            9: (I64, position),
        }
        columns = (STRUCT, [{2: (I64, position), 3: (STRUCT, chunk)}])
        groups.append({1: (LIST, columns), 2: chunk[6], 3: (I64, page.n_values)})
        pieces += [header, (page.start, page.size)]
        position += len(header) + page.size
        n_rows += page.n_values
    root: Struct = {4: (BINARY, b"schema"), 5: (I32, 1)}
    leaf: Struct = {**column, 3: (I32, _REQUIRED), 4: (BINARY, b"label")}
    schema, rows = (LIST, (STRUCT, [root, leaf])), (I64, n_rows)
    footer = written_struct({1: (I32, 1), 2: schema, 3: rows, 4: (LIST, (STRUCT, groups))})
    pieces.append(footer + len(footer).to_bytes(4, "little") + _MAGIC)
    return _SplicedPieces.of(pieces)


class _SplicedFile:
    """An open file that consists of pieces, some of them of the file at a path."""

    def __init__(self, path: str, pieces: _SplicedPieces) -> None:
        self._path, self._pieces, self._position = path, pieces, 0

    def seek(self, position: int, /) -> int:
        self._position = position
        return position

    def read(self, size: int, /) -> bytes:
        pieces, ends = self._pieces.pieces, self._pieces.ends
        end = min(self._position + size, ends[-1]) if size >= 0 else ends[-1]
        found = []
        while self._position < end:
            at = bisect_right(ends, self._position)
            skipped = self._position - (ends[at] - _size_of(pieces[at]))
            size = min(end, ends[at]) - self._position
            found.append(self._part(pieces[at], skipped, size))
            self._position += size
        return b"".join(found)

    def _part(self, piece: bytes | tuple[int, int], skipped: int, size: int) -> bytes:
        if isinstance(piece, bytes):
            return piece[skipped : skipped + size]
        with _DataFile(self._path) as file:  # for each piece: DuckDB does not close what it has opened
            return file.read(piece[0] + skipped, size)
