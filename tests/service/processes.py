"""`armnesia serve` in a process of its own."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.databases import Place

MAIN = "from armnesia.cli.main import main; main()"


@dataclass
class Process:
    """A running server; `lines` is its log."""

    process: "subprocess.Popen[str]"
    url: str
    lines: list[str] = field(default_factory=list)
    _came: threading.Condition = field(default_factory=threading.Condition)

    def read_log(self) -> None:
        """Note the lines of its log until it ends."""
        for line in self.process.stderr or ():
            with self._came:
                self.lines.append(line)
                self._came.notify_all()

    def wait_for_answers(self, number: int, route: str = "/v1/deletions") -> None:
        """Wait until so many requests were answered."""
        with self._came:
            assert self._came.wait_for(
                lambda: sum(f'"{route}"' in line for line in self.lines) >= number, 120
            )

    def kill(self) -> None:
        """End it at once, as a power failure of the process would."""
        self.process.kill()
        self.process.wait(30)

    def end(self) -> int:
        """Tell it to end, and wait for that."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def serve_process(place: Place, *options: str) -> Iterator[Process]:
    """Run `armnesia serve` on a free port."""
    command = [
        sys.executable,
        "-c",
        MAIN,
        "serve",
        "--url",
        place.url,
        "--keys",
        str(place.keys),
    ]
    process = subprocess.Popen(
        [*command, "--port", "0", "--verify-hours", "0", *options],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    running = Process(process, "")
    for line in process.stderr:
        running.lines.append(line)
        message = json.loads(line).get("message", "")
        if "running on" in message:
            running.url = message.split("running on ")[1].split()[0]
            break
    assert running.url, running.lines
    reader = threading.Thread(target=running.read_log, daemon=True)
    reader.start()
    try:
        yield running
    finally:
        running.kill()
        reader.join(30)
        process.stderr.close()
