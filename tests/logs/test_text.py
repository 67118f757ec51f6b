"""Labels of any text survive a file: quotes, newlines, spaces, every script."""

import csv
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import example, given, settings
from hypothesis import strategies as st

from armnesia.logs import read_log

LABELS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
ROWS = st.lists(st.tuples(LABELS, st.floats(0, 1), st.none() | LABELS), min_size=1, max_size=8)


@settings(max_examples=40, deadline=None)
@given(rows=ROWS)
@example(
    rows=[('"', 0.5, "a,b"), ("'", 1.0, "a\nb"), ("x\r\ny", 0.0, " a "), ("\\", 0.1, "\t"), ("\0", 1.0, "#")]
)
def test_any_text_reads_the_same_from_files(rows: list[tuple[str, float, str | None]]) -> None:
    action, reward, user = (list(column) for column in zip(*rows, strict=True))
    actions = sorted({label for label, _, _ in rows})
    memory = read_log(action=action, reward=reward, user=user, actions=actions)
    with tempfile.TemporaryDirectory() as folder:
        in_csv, in_parquet = Path(folder) / "log.csv", Path(folder) / "log.parquet"
        with in_csv.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n")
            writer.writerows([("action", "reward", "user"), *rows])
        users = pa.array(user, pa.string())
        pq.write_table(pa.table({"action": action, "reward": reward, "user": users}), in_parquet)
        for path in (in_csv, in_parquet):
            log = read_log(path, user="user", actions=actions)
            assert log.statistics() == memory.statistics()
            assert log.users() == memory.users()
            if memory.users():
                everyone = list(memory.users())
                assert log.request(users=everyone) == memory.request(users=everyone)
                assert log.request(user=everyone[0]) == memory.request(user=everyone[0])
