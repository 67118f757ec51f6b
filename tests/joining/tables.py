"""Tables in the formats that a join reads, with times of several types."""

import csv
import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TIMES: dict[str, Callable[[datetime], Any]] = {
    "zoned": lambda moment: moment,
    "local": lambda moment: moment.replace(tzinfo=None),
    "text": lambda moment: moment.isoformat().replace("+00:00", "Z"),
    "text without zone": lambda moment: moment.replace(tzinfo=None).isoformat(sep=" "),
    "text elsewhere": lambda moment: moment.astimezone(timezone(timedelta(hours=-7))).isoformat(),
}
"""How a moment is written."""
TEXT_TIMES = [name for name in TIMES if "text" in name]


def write(path: Path, rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> Path:
    """Write rows to CSV, Parquet, JSON lines or a JSON array, by the suffix; a missing value is None."""
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows([["" if row[name] is None else row[name] for name in columns] for row in rows])
    elif path.suffix == ".parquet":
        values = {name: [row[name] for row in rows] for name in columns}
        arrays = {name: pa.array(each) for name, each in values.items()}
        pq.write_table(
            pa.table({n: a.cast(pa.string()) if a.type == pa.null() else a for n, a in arrays.items()}), path
        )
    else:
        chosen = [{name: row[name] for name in columns} for row in rows]
        lines = "".join(json.dumps(row) + "\n" for row in chosen)
        path.write_text(json.dumps(chosen, indent=1) if path.suffix == ".json" else lines, encoding="utf-8")
    return path
