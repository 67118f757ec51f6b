"""An erasure in a process of its own that is killed before one of its steps.

Run as `python -m tests.logs.erasing.interrupted KIND FOLDER PLAN STEP [SCHEMA]`. The plan is stored in a file
when it is made. A step is a call of one of the functions in `STEPS`; the process kills itself before the one
with this number, and ends with the number of steps on its standard output if there are fewer.
"""

import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from armnesia.logs.erasing import ErasurePlan, People
from tests.logs.erasing.stores import STORES, PostgresStore, Store, name_of

ERASED = tuple(name_of(person) for person in (1, 2, 3))
STEPS: dict[str, tuple[tuple[str, str], ...]] = {
    "parquet": (
        ("os", "replace"),
        ("os", "unlink"),
        ("os", "chmod"),
        ("armnesia.logs.erasing.file_swaps", "_exchange"),
        ("armnesia.logs.erasing.file_swaps", "sync_folder"),
        ("armnesia.logs.erasing.parquet_eraser", "write_without"),
        ("armnesia.logs.erasing.parquet_eraser", "checksum"),
        ("armnesia.logs.erasing.parquet_eraser", "sync_folder"),
    ),
    "delta": (
        ("deltalake.table.TableMerger", "execute"),
        ("deltalake.DeltaTable", "vacuum"),
        ("deltalake.DeltaTable", "create_checkpoint"),
        ("armnesia.logs.erasing.lake_eraser", "other_rows_stayed"),
        ("armnesia.logs.erasing.delta_files.DeltaFolder", "_remove"),
    ),
    "iceberg": (
        ("pyiceberg.table.Transaction", "delete"),
        ("pyiceberg.catalog.sql.SqlCatalog", "commit_table"),
        ("pyiceberg.serializers.ToOutputFile", "table_metadata"),
        ("pyiceberg.io.pyarrow.PyArrowFileIO", "delete"),
        ("armnesia.logs.erasing.lake_eraser", "other_rows_stayed"),
        ("armnesia.logs.erasing.iceberg", "expire"),
    ),
    "sqlite": (
        ("armnesia.logs.erasing.sqlite.SqliteEraser", "_names"),
        ("armnesia.logs.erasing.sqlite.SqliteEraser", "_delete"),
        ("armnesia.logs.erasing.sqlite.SqliteEraser", "purge"),
    ),
    "postgresql": (
        ("armnesia.logs.erasing.postgres.PostgresEraser", "_names"),
        ("armnesia.logs.erasing.postgres.PostgresEraser", "_copy"),
        ("armnesia.logs.erasing.postgres.PostgresEraser", "_delete"),
        ("armnesia.logs.erasing.postgres.PostgresEraser", "purge"),
    ),
}


def main(kind: str, folder: str, plan_file: str, step: str, schema: str = "") -> None:
    store = opened(kind, Path(folder), schema)
    steps = killing_before(int(step), STEPS[kind])
    erase(store, Path(plan_file))
    print(len(steps))


def killing_before(number: int, functions: Iterable[tuple[str, str]]) -> list[str]:
    """Kill this process before the call of one of these functions that has this number.

    Returns a list to which the name of each is added that was called.
    """
    called: list[str] = []

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*arguments: Any, **named: Any) -> Any:
            called.append(name)
            if len(called) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **named)

        return counting

    for owner, name in functions:
        place = _found(owner)
        kept = vars(place)[name] if isinstance(place, type) else getattr(place, name)
        plain = counted(name, kept.__func__ if isinstance(kept, staticmethod) else kept)
        setattr(place, name, staticmethod(plain) if isinstance(kept, staticmethod) else plain)
    return called


def opened(kind: str, folder: Path, schema: str) -> Store:
    """A store that exists already."""
    if kind != "postgresql":
        return STORES[kind](folder)
    store = PostgresStore.__new__(PostgresStore)
    store.folder, store.schema = folder, schema
    return store


def erase(store: Store, plan_file: Path) -> None:
    """What a caller does, at first and after an interruption: finish a stored plan, or make a new one."""
    people = People.named(ERASED)
    eraser = store.eraser()
    if plan_file.exists():
        plan: ErasurePlan | None = ErasurePlan.from_dict(json.loads(plan_file.read_text("utf-8")))
    else:
        plan = eraser.plan(people)
        if plan is None:
            return
        new = plan_file.with_suffix(".new")
        new.write_text(json.dumps(plan.to_dict()), "utf-8")
        new.rename(plan_file)
    assert plan is not None
    store.eraser().apply(plan, people)
    store.eraser().purge(plan, people, ignore_retention=True)
    plan_file.unlink()


def _found(owner: str) -> Any:
    """A module, or a class of one."""
    try:
        return importlib.import_module(owner)
    except ModuleNotFoundError:
        module, _, name = owner.rpartition(".")
        return getattr(importlib.import_module(module), name)


if __name__ == "__main__":
    main(*sys.argv[1:])
