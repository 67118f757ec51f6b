"""Tables in the formats that a join reads, with users and times of several types."""

import csv
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

# How a moment is written, and the unit that the join is told.
TIMES: dict[str, tuple[Callable[[datetime], Any], str | None]] = {
    "zoned": (lambda moment: moment, None),
    "local": (lambda moment: moment.replace(tzinfo=None), None),
    "text": (lambda moment: moment.isoformat().replace("+00:00", "Z"), None),
    "text without zone": (lambda moment: moment.replace(tzinfo=None).isoformat(sep=" "), None),
    "text elsewhere": (lambda moment: moment.astimezone(timezone(timedelta(hours=-7))).isoformat(), None),
    "us": (lambda moment: (moment - EPOCH) // MICROSECOND, "us"),
    "ns": (lambda moment: (moment - EPOCH) // MICROSECOND * 1000, "ns"),
    "ns text": (lambda moment: str((moment - EPOCH) // MICROSECOND * 1000), "ns"),
    "s text": (lambda moment: f"{(moment - EPOCH) // MICROSECOND / 10**6:.6f}", "s"),
}
TEXT_TIMES = [name for name in TIMES if "text" in name]


def write(path: Path, rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> Path:
    """Write rows to CSV, Parquet or JSON lines, by the suffix; a missing value is None."""
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows([["" if row[name] is None else row[name] for name in columns] for row in rows])
    elif path.suffix == ".jsonl":
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps({name: row[name] for name in columns}) + "\n" for row in rows)
    else:
        pq.write_table(pa.table({name: [row[name] for row in rows] for name in columns}), path)
    return path
