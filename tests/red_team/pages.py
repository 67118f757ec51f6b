"""Which pages of an SQLite file belong to which table or index."""

import sqlite3
from contextlib import closing
from pathlib import Path

INTERIOR = (2, 5)


def pages_of(path: Path) -> dict[str, list[int]]:
    """The pages of each b-tree, from 1, and those of no b-tree: free, overflow and pointer pages.

    The format is that of https://www.sqlite.org/fileformat2.html, "B-tree Pages".
    """
    data = path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        ((size,),) = connection.execute("PRAGMA page_size").fetchall()
        roots = connection.execute("SELECT name, rootpage FROM sqlite_master WHERE rootpage > 0").fetchall()
    found = {name: _walk(data, size, root) for name, root in [("sqlite_master", 1), *roots]}
    known = {page for pages in found.values() for page in pages}
    others = [page for page in range(1, len(data) // size + 1) if page not in known]
    return found | ({"other pages": others} if others else {})


def _walk(data: bytes, size: int, root: int) -> list[int]:
    pages, waiting = [], [root]
    while waiting:
        page = waiting.pop()
        pages.append(page)
        start = (page - 1) * size
        header = start + (100 if page == 1 else 0)
        if data[header] in INTERIOR:
            cells = int.from_bytes(data[header + 3 : header + 5])
            waiting.append(int.from_bytes(data[header + 8 : header + 12]))
            for cell in range(cells):
                at = header + 12 + 2 * cell
                child = start + int.from_bytes(data[at : at + 2])
                waiting.append(int.from_bytes(data[child : child + 4]))
    return pages
