"""Child processes that start in milliseconds: a nursery that has imported everything forks them on request.

The nursery is a process of its own with a single thread, so that a fork is safe whatever the tests run in.
"""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]


class Nursery:
    """Starts children that run `module.function(**arguments)`, and waits for their end."""

    def __init__(self, lines_in: IO[str], lines_out: IO[str]) -> None:
        self._in, self._out = lines_in, lines_out

    def start(self, module: str, function: str, **arguments: Any) -> int:
        """The process id of a new child."""
        return self._ask({"module": module, "function": function, "arguments": arguments})

    def wait(self, child: int) -> int:
        """How a child ended: its exit code, or minus the signal that killed it."""
        return self._ask({"wait": child})

    def _ask(self, question: dict[str, Any]) -> int:
        self._in.write(json.dumps(question) + "\n")
        self._in.flush()
        return int(self._out.readline())


@contextmanager
def nursery(*modules: str) -> Iterator[Nursery]:
    """A nursery that has imported these modules, by their names from the root of the project."""
    command = [sys.executable, __file__, *modules]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Nursery(process.stdin, process.stdout)
        finally:
            process.stdin.close()


def _serve() -> None:
    for line in sys.stdin:
        question = json.loads(line)
        if "wait" in question:
            _, status = os.waitpid(question["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if answer == 0:
                _be_child(question)
        print(answer, flush=True)


def _be_child(question: dict[str, Any]) -> None:
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)  # what the nursery prints is answers
        getattr(importlib.import_module(question["module"]), question["function"])(**question["arguments"])
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for name in sys.argv[1:]:
        importlib.import_module(name)
    _serve()
