"""Bits flipped: in the pages of every table and index, in the keys, the pin and a certificate."""

import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from armnesia.core.errors import ArmnesiaError
from armnesia.vault import Certificate
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.pinned_head import PinnedHead
from tests.red_team.attacks import Trial, Verdict
from tests.red_team.pages import pages_of
from tests.red_team.target import Copy, Target


def pages(trials: int, seed: int) -> Iterator[Trial]:
    """Flip one bit in a page of each table and index in turn, then forget and verify."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        target = Target.create(Path(folder), seed)
        places = pages_of(target.folder / "vault.db")
        size = 4096
        names = list(places)
        for trial in range(trials):
            name = names[trial % len(names)]
            page, bit = draw.choice(places[name]), draw.randrange(8)
            copy = target.copy(target.folder / "attacked")
            offset = draw.choice(_used(copy.path, page, size) if trial % 4 else range(size))
            flip(copy.path, (page - 1) * size + offset, bit)
            what = f"bit {bit} of byte {offset} of page {page} ({name})"
            yield copy.verdict(what, draw.choice(sorted(target.rows)))


def indexes(trials: int, seed: int) -> Iterator[Trial]:
    """Flip one bit of a key in an index, ingest the log again, and forget the record that it may hide."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        target = Target.create(Path(folder), seed)
        ring, places = target.keyring, pages_of(target.folder / "vault.db")
        held = [
            (id_, user)
            for id_, user in zip(target.log["id"], target.log["user"], strict=True)
            if user not in target.forgotten
        ]
        for trial in range(trials):
            record, user = draw.choice(held)
            index, key = [
                ("sqlite_autoindex_record_1", ring.record_identity("id", record)),
                ("record_owner", ring.owner_digest(user)),
                ("sqlite_autoindex_owner_1", ring.owner_digest(user)),
                ("sqlite_autoindex_suppressed_1", ring.user_digest(draw.choice(target.forgotten))),
            ][trial % 4]
            copy, bit = target.copy(target.folder / "attacked"), draw.randrange(8 * len(key))
            flip(copy.path, offset_of(copy.path, places[index], key) + bit // 8, bit % 8)
            yield copy.verdict_of_ingesting_again(f"bit {bit} of a key in {index}", record)


def offset_of(path: Path, pages: list[int], key: bytes) -> int:
    """Where a key is in these pages."""
    data, size = path.read_bytes(), 4096
    return next(at for page in pages if (at := data.find(key, (page - 1) * size, page * size)) > 0)


def _used(path: Path, page: int, size: int) -> list[int]:
    """The bytes of a page that are not zero: most flips elsewhere are in space that is free."""
    data = path.read_bytes()[(page - 1) * size : page * size]
    return [offset for offset, byte in enumerate(data) if byte] or [0]


def keys(trials: int, seed: int) -> Iterator[Trial]:
    """Flip one bit of the keys' file."""
    for target, copy, what, victim in _flipped(trials, seed, "vault.db.keys"):
        if _parsed(Keyring.read, copy.keys) == target.keyring:  # such as the case of a hexadecimal digit
            yield copy.verdict(what, victim)
        else:
            yield _refused_at_opening(copy, what)


def pin(trials: int, seed: int) -> Iterator[Trial]:
    """Flip one bit of the pinned head."""
    for target, copy, what, victim in _flipped(trials, seed, "vault.db.keys.head"):
        if _parsed(lambda path: PinnedHead(path).read(), copy.pin) == target.head:
            yield copy.verdict(what, victim)
        else:
            yield _refused_at_opening(copy, what)


def certificates(trials: int, seed: int) -> Iterator[Trial]:
    """Flip one bit of a certificate's file."""
    for target, copy, what, _ in _flipped(trials, seed, "certificate.json"):
        path = copy.folder / "certificate.json"
        try:
            read = Certificate.from_json(path.read_text(encoding="utf-8"))
            problems = read.verify(target.public_keys)
        except (ArmnesiaError, UnicodeDecodeError) as error:
            yield Trial(what, Verdict.REFUSED, str(error))
            continue
        true = json.loads((target.folder / "certificate.json").read_text(encoding="utf-8"))
        if problems:
            yield Trial(what, Verdict.CAUGHT, problems[0])
        else:
            same = json.loads(path.read_text(encoding="utf-8")) == true
            yield Trial(what, Verdict.NO_EFFECT if same else Verdict.MISSED, "" if same else "it verifies")


def flip(path: Path, offset: int, bit: int) -> None:
    """Flip one bit of a file."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 1 << bit
    path.write_bytes(data)


def _flipped(trials: int, seed: int, name: str) -> Iterator[tuple[Target, Copy, str, str]]:
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        target = Target.create(Path(folder), seed)
        size = (target.folder / name).stat().st_size
        for _ in range(trials):
            copy = target.copy(target.folder / "attacked")
            offset, bit = draw.randrange(size), draw.randrange(8)
            flip(copy.folder / name, offset, bit)
            yield target, copy, f"bit {bit} of byte {offset} of {name}", draw.choice(sorted(target.rows))


def _parsed(read: object, path: Path) -> object:
    try:
        return read(path)  # type: ignore[operator]
    except ArmnesiaError:
        return None


def _refused_at_opening(copy: Copy, what: str) -> Trial:
    try:
        copy.open().close()
    except ArmnesiaError as error:
        return Trial(what, Verdict.REFUSED, str(error))
    except Exception as error:
        return Trial(what, Verdict.MISSED, f"{type(error).__name__}: {error}")
    return Trial(what, Verdict.MISSED, "the vault opens")
