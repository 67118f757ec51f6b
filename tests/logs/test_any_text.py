"""Labels of any text are the same in every kind of source: quotes, newlines, spaces, every script."""

import csv
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from armnesia.logs import open_source, read_log
from tests.logs.conftest import write_sqlite

LABELS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
ROWS = st.lists(st.tuples(LABELS, st.floats(0, 1), st.none() | LABELS), min_size=1, max_size=8)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(rows=ROWS)
@example(
    rows=[('"', 0.5, "a,b"), ("'", 1.0, "a\nb"), ("x\r\ny", 0.0, " a "), ("\\", 0.1, "\t"), ("\0", 1.0, "#")]
)
def test_any_text_reads_the_same(rows: list[tuple[str, float, str | None]]) -> None:
    action, reward, user = (list(column) for column in zip(*rows, strict=True))
    table: dict[str, list[Any]] = {"action": action, "reward": reward, "user": user}
    actions = sorted({label for label, _, _ in rows})
    memory = read_log(table, actions=actions)
    (of_memory,) = open_source(table, action="action", reward="reward").rows(actions, (0, 1))
    with tempfile.TemporaryDirectory() as folder:
        in_csv, in_parquet = Path(folder) / "log.csv", Path(folder) / "log.parquet"
        with in_csv.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n")
            writer.writerows([("action", "reward", "user"), *rows])
        users = pa.array(user, pa.string())
        pq.write_table(pa.table({"action": action, "reward": reward, "user": users}), in_parquet)
        in_sqlite = write_sqlite(Path(folder) / "log.db", table)
        for source, name in ((in_csv, None), (in_parquet, None), (in_sqlite, "log")):
            log = read_log(source, table=name, actions=actions)
            assert log.statistics() == memory.statistics()
            assert log.users() == memory.users()
            if memory.users():
                everyone = list(memory.users())
                assert log.request(users=everyone) == memory.request(users=everyone)
                assert log.request(user=everyone[0]) == memory.request(user=everyone[0])
            (found,) = open_source(source, action="action", reward="reward", table=name).rows(actions, (0, 1))
            assert found == of_memory
