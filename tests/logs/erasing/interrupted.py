"""An erasure that is killed after each change that it makes, and run again.

Run as `python -m tests.logs.erasing.interrupted KIND FOLDER`. This process only forks. A first child erases,
and looks at what is stored before each line of the erasers and each call within pyiceberg: where something
has changed since, a step has been done. For each step, a child erases and kills itself there; the next one
erases again, and looks at what is left.
"""

import os
import shutil
import sys
import traceback
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any

import pyiceberg

from armnesia.logs import erase
from armnesia.logs.statements import Chosen
from tests.databases import fresh_schema, postgres_url
from tests.logs.erasing.stores import PEOPLE, STORES, PostgresStore, Store, filled, key, made_rows, without

_ERASERS, _LIBRARY = (os.path.dirname(str(each.__file__)) for each in (erase, pyiceberg))
ERASED = Chosen(users=[PEOPLE[1]], ids=["event-1-4"])


def main(kind: str, folder: str) -> None:
    here, kept, noted = (Path(folder, name) for name in ("log", "kept", "steps"))
    schema = fresh_schema() if kind == "PostgreSQL" else ""
    expected = without([*made_rows(1), *made_rows(2)], PEOPLE[1], events=("event-1-4",))

    @cache
    def store() -> Store:
        return PostgresStore(here, schema) if kind == "PostgreSQL" else STORES[kind](here)

    def fill() -> None:
        if kept.exists():
            store().restore(kept)
        else:
            filled(store())

    def erase_all() -> None:
        eraser = store().eraser()
        eraser.delete(ERASED)
        eraser.purge(ignore_retention=True)

    def find_steps() -> None:
        states, steps = [store().state()], []

        def look(place: int) -> None:
            state = store().state()
            if state != states[-1]:
                states.append(state)
                steps.append(place)

        at_each_place(erase_all, look)
        noted.write_text(" ".join(map(str, steps)))

    def kill_at(step: int) -> None:
        at_each_place(erase_all, lambda place: os.kill(os.getpid(), 9) if place == step else None)

    def finish() -> None:
        store().settle()
        erase_all()
        rows = sorted(store().rows(), key=key)
        assert rows == expected, rows
        assert store().files_with(PEOPLE[1]) == 0
        assert store().eraser().find(ERASED) == 0

    if kind == "PostgreSQL":
        postgres_url()  # so that the children share a server
    in_child(fill)
    shutil.copytree(here, kept)
    in_child(find_steps)
    steps = list(map(int, noted.read_text().split()))
    for step in steps:
        in_child(fill)
        in_child(partial(kill_at, step), killed=True)
        in_child(finish)
    print(len(steps))


def at_each_place(act: Callable[[], None], look: Callable[[int], None]) -> None:
    """Look, with the number of the place, before each line of the erasers and each call in pyiceberg."""
    place = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal place
        path = frame.f_code.co_filename
        if not path.startswith((_ERASERS, _LIBRARY)):
            return None
        place += 1
        sys.settrace(None)
        look(place)
        sys.settrace(trace)
        return trace if path.startswith(_ERASERS) else None

    sys.settrace(trace)
    act()
    sys.settrace(None)


def in_child(act: Callable[[], Any], *, killed: bool = False) -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) if killed else status == 0, f"the child ended with {status}"


if __name__ == "__main__":
    main(*sys.argv[1:])
