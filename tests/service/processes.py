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

_LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({0}, {0})); "
MAIN = "from armnesia.cli.main import main; main()"


@dataclass
class Process:
    """A running server; `lines` is its log."""

    process: "subprocess.Popen[str]"
    url: str
    lines: list[str] = field(default_factory=list)

    def kill(self) -> None:
        """End it at once, as a power failure of the process would."""
        self.process.kill()
        self.process.wait(30)

    def end(self) -> int:
        """Tell it to end, and wait for that."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def serve_process(place: Place, *options: str, files: int | None = None) -> Iterator[Process]:
    """Run `armnesia serve` on a free port, with so many open files at most."""
    command = [
        sys.executable,
        "-c",
        MAIN if files is None else _LIMITED.format(files) + MAIN,
        "serve",
        "--url",
        place.url,
        "--keys",
        str(place.keys),
    ]
    process = subprocess.Popen(
        [*command, "--port", "0", "--rate", "1000000", "--verify-hours", "0", *options],
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
    reader = threading.Thread(target=lambda: running.lines.extend(process.stderr or ()), daemon=True)
    reader.start()
    try:
        yield running
    finally:
        running.kill()
        reader.join(30)
        process.stderr.close()
