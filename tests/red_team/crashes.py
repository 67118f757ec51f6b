"""A process that forgets is killed, or its disk fails, at any of its system calls.

With `strace` installed, calls are chosen by their number. Without it, the process kills itself at a step of
its own: before a statement, a commit, the pinning of the head or the erasing of bytes.
"""

import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from armnesia.core.errors import ArmnesiaError
from armnesia.vault import Vault
from armnesia.vault.ledger.pinned_head import PinnedHead
from tests.red_team.attacks import Trial, Verdict
from tests.red_team.target import Copy, Target

CALLS = "openat,write,pwrite64,fsync,fdatasync,ftruncate,flock,fcntl,link,rename,unlink,close"
"""The system calls that change files, or order changes."""
FAILING = "write,pwrite64,fsync,fdatasync,ftruncate"
_FORGET = """
import sys
from armnesia.core.errors import ArmnesiaError
from armnesia.vault import Vault
open("/dev/null").close()
try:
    with Vault.open(sys.argv[1], timeout=5) as vault:
        vault.forget(users=[sys.argv[2]]).certificate.save(sys.argv[3])
except ArmnesiaError as error:
    print(error, file=sys.stderr)
    sys.exit(2)
"""
_DYING = """
import os, signal, sys
from tests.vault.crash_driver import count_steps
count_steps([0], int(sys.argv[4]))
"""
_BEGIN = re.compile(r'openat\(.*"/dev/null"')


def kills(trials: int, seed: int) -> Iterator[Trial]:
    """Kill the process at a call; the same request again must be answered truly, once and for all."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        target = Target.create(Path(folder), seed)
        places = _places(target, CALLS)
        for _ in range(trials):
            victim, copy = draw.choice(sorted(target.rows)), target.copy(target.folder / "attacked")
            place = draw.choice(places)
            if shutil.which("strace"):
                call, number = place
                _run(copy, victim, "-e", f"inject={call}:signal=KILL:when={number}")
                what = f"killed at {call} number {number}"
            else:
                what = f"killed at step {place[1]}"
                _run(copy, victim, step=place[1])
            yield _afterwards(copy, what, victim)


def disk_faults(trials: int, seed: int) -> Iterator[Trial]:
    """Let a call fail, once or from then on, with an error of the disk."""
    draw = random.Random(seed)
    if not shutil.which("strace"):
        return
    with tempfile.TemporaryDirectory() as folder:
        target = Target.create(Path(folder), seed)
        places = _places(target, FAILING)
        for _ in range(trials):
            victim, copy = draw.choice(sorted(target.rows)), target.copy(target.folder / "attacked")
            call, number = draw.choice(places)
            error, on = draw.choice(["EIO", "ENOSPC"]), draw.choice(["", "+"])
            done = _run(copy, victim, "-e", f"inject={call}:error={error}:when={number}{on}")
            what = f"{error} at {call} number {number}{on}"
            if "Traceback" in done.stderr:
                yield Trial(what, Verdict.MISSED, done.stderr[-300:])
                continue
            yield _afterwards(copy, what, victim)


def _places(target: Target, calls: str) -> list[tuple[str, int]]:
    """The calls of one whole forget, after its start, each by name and number."""
    if not shutil.which("strace"):
        return [("", step) for step in range(1, 25)]
    copy = target.copy(target.folder / "attacked")
    log = target.folder / "calls.txt"
    _run(copy, min(target.rows), "-o", str(log), calls=calls if "openat" in calls else f"openat,{calls}")
    places, numbers, begun = [], dict.fromkeys(calls.split(","), 0), False
    for line in log.read_text(encoding="utf-8").splitlines():
        match = re.match(r"(?:\d+ +)?(\w+)\(", line)
        if match is None:
            continue
        call = match[1]
        if call in numbers:
            numbers[call] += 1
            if begun:
                places.append((call, numbers[call]))
        begun = begun or _BEGIN.search(line) is not None
    return places


def _run(
    copy: Copy, victim: str, *options: str, calls: str = CALLS, step: int | None = None
) -> "subprocess.CompletedProcess[str]":
    program = _FORGET if step is None else _DYING + _FORGET
    command = [sys.executable, "-c", program, f"sqlite:///{copy.path}", victim]
    command += [str(copy.folder / "handed-out.json"), *([] if step is None else [str(step)])]
    if step is None:
        command = ["strace", "-f", "-qq", "-e", f"trace={calls}", *options, *command]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def _afterwards(copy: Copy, what: str, victim: str) -> Trial:
    """Ask again: the certificate must be true, the pin up to date, and yesterday's backup refused."""
    target = copy.target
    handed_out = copy.folder / "handed-out.json"
    signed = handed_out.exists()
    try:
        if signed and copy.pin.read_bytes() != _pin_of(copy):
            return Trial(what, Verdict.MISSED, "a certificate was handed out, and its head is not pinned")
        with copy.open() as vault:
            done = vault.forget(users=[victim])
            problems = vault.verify().problems
            head = vault.head
        false = copy.false_claims(victim, done.certificate)
        if false or problems:
            return Trial(what, Verdict.MISSED, "; ".join([*false, *problems]))
        if PinnedHead(copy.pin).read() != head:
            return Trial(what, Verdict.MISSED, "the pin did not catch up")
        copy.path.write_bytes((target.folder / "yesterday.db").read_bytes())
        copy.open().close()
    except ArmnesiaError as error:
        expected = "is older than its pinned head" in str(error)
        verdict = Verdict.NO_EFFECT if expected else Verdict.MISSED
        return Trial(what, verdict, str(error))
    return Trial(what, Verdict.MISSED, "yesterday's backup opens")


def _pin_of(copy: Copy) -> bytes:
    with Vault.open(f"sqlite:///{copy.path}", accept="any") as vault:
        return (str(vault.head).ljust(127) + "\n").encode()
