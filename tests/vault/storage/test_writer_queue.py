"""The queue of writers: one at a time, the next in line before the one that has just written."""

import itertools
import threading
import time
from pathlib import Path

from armnesia.vault.storage.writer_queue import WriterQueue


def test_whoever_has_written_gets_in_line_again(tmp_path: Path) -> None:
    """Two writers that come back at once take turns, however short the time between."""
    turns: list[str] = []
    stop = time.monotonic() + 1.0

    def write(name: str) -> None:
        queue = WriterQueue(str(tmp_path / "queue"))
        while time.monotonic() < stop:
            with queue.turn(5):
                turns.append(name)
                time.sleep(0.001)
        queue.close()

    writers = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    changes = sum(one != other for one, other in itertools.pairwise(turns))
    assert len(turns) > 20
    assert changes > 0.8 * len(turns)


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    first, second = WriterQueue(str(tmp_path / "queue")), WriterQueue(str(tmp_path / "queue"))
    with first.turn(1):
        began = time.monotonic()
        with second.turn(0.2):  # the time is over: the database decides
            assert time.monotonic() - began >= 0.2
    with second.turn(0):
        pass
    assert (tmp_path / "queue").stat().st_mode & 0o777 == 0o600
    first.close()
    second.close()


def test_without_a_file_nobody_waits(tmp_path: Path) -> None:
    queue = WriterQueue(str(tmp_path / "no-such-folder" / "queue"))
    with queue.turn(0):
        pass
    queue.close()
