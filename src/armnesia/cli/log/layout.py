"""The command `layout`."""

from pathlib import Path
from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.interrupts import Interrupted, import_before_work
from armnesia.cli.output import counting_seconds, print_result
from armnesia.core.messages import counted
from armnesia.logs.files.duckdb_engine import MEMORY_LIMIT
from armnesia.logs.files.layout import layout_log


def layout(
    source: Annotated[str, typer.Argument(metavar="SRC", help="Parquet files: a path, folder or glob.")],
    out: Annotated[Path, typer.Argument(metavar="DST", help="The file to write: a new .parquet file.")],
    user_column: Annotated[str, typer.Option(help="Column of the user.")] = "user",
    memory_limit: opt.MemoryLimit = MEMORY_LIMIT,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the file DST.")] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Write a log as Parquet, sorted by person.

    All columns, types and values stay what they are. The rows of a person are then found in milliseconds,
    however many rows there are.
    """
    import_before_work("duckdb")
    try:
        with counting_seconds(None, quiet=as_json):
            done = layout_log(source, out, user=user_column, replace=replace, memory_limit=memory_limit)
    except KeyboardInterrupt:
        raise Interrupted("interrupted; nothing was written") from None
    print_result(
        done.to_dict,
        as_json,
        f"{done.out}: {counted(done.rows, 'row')} of {counted(done.files, 'file')}, sorted by"
        f" {done.user_column}, in {counted(done.row_groups, 'row group')} and {done.bytes:,} bytes",
    )
