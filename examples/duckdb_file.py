"""Decisions in a table of a DuckDB file."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from armnesia.core.files import stamp_of
from armnesia.logs.columns import Columns
from armnesia.logs.engine import Connection, connected
from armnesia.logs.source import Scan, Source, Version
from armnesia.logs.sql import Column, literal, quoted


@dataclass(frozen=True, eq=False)
class DuckDBSource(Source):
    """A table in the file of `duckdb:///FILE`."""

    option: ClassVar[str] = "table"

    @classmethod
    def at(cls, location: Any, columns: Columns, option: str | None = None) -> "DuckDBSource":
        """The table, which is `log` if no other is named."""
        path = os.path.abspath(location.removeprefix("duckdb:///"))
        return cls(f"duckdb:///{path}", columns, option or "log")

    @property
    def path(self) -> str:
        """The file."""
        return self.location.removeprefix("duckdb:///")

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection to which the file is attached for reading."""
        with connected(self.location) as connection:
            name = f"log_{uuid.uuid4().hex}"
            connection.rows(f"ATTACH {literal(self.path)} AS {name} (READ_ONLY)")
            try:
                connection.server = name
                yield connection
            finally:
                connection.end(f"DETACH {name}")

    def scan(self, connection: Connection) -> Scan:
        """The columns, in the types of DuckDB."""
        table = f"{connection.server}.{quoted(str(self.table))}"
        described = connection.rows(f"DESCRIBE {table}")
        return Scan(table, {name: Column(quoted(name), type_) for name, type_, *_ in described})

    def version(self) -> Version:
        """Size and time of change of the file."""
        return {"file": self.path, "stamp": list(stamp_of(self.path))}
