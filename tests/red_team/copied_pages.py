"""A page in the place of another: misdirected writes of a disk, or a file of which parts are older."""

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.red_team.attacks import Trial
from tests.red_team.pages import pages_of
from tests.red_team.target import Target

SIZE = 4096


def copied_pages(trials: int, seed: int) -> Iterator[Trial]:
    """Overwrite a page with a copy of another, mostly one with rows of the victim, then forget and verify.

    One trial in four takes the older state of the same page, from yesterday's backup, and one in four
    overwrites a page of the suppression list, which may have the digests of the victim. Every request
    searches the whole vault, as the command line does.
    """
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        target = Target.create(Path(folder), seed)
        original = (target.folder / "vault.db").read_bytes()
        older = (target.folder / "yesterday.db").read_bytes()
        places = pages_of(target.folder / "vault.db")
        owners = {person: target.keyring.owner_digest(person) for person in sorted(target.rows)}
        every = [page for pages in places.values() for page in pages]
        held = {
            page: [person for person, owner in owners.items() if owner in _page(original, page)]
            for page in every
        }
        with_rows = [page for page in every if held[page]]
        of_list = [page for name, pages in places.items() if "suppressed" in name for page in pages]
        for trial in range(trials):
            is_older = trial % 4 == 3
            lost = draw.choice(of_list if trial % 4 == 1 else [page for page in every if page > 1])
            source = lost if is_older else draw.choice(with_rows if trial % 8 else every)
            content = _page(older if is_older else original, source)
            copy = target.copy(target.folder / "attacked")
            copy.path.write_bytes(original[: (lost - 1) * SIZE] + content + original[lost * SIZE :])
            victim = draw.choice(held[source] or sorted(owners))
            name = next(name for name, pages in places.items() if lost in pages)
            what = f"page {lost} ({name}) has {'an older state' if is_older else f'a copy of page {source}'}"
            yield copy.verdict(what, victim, search=True)


def _page(data: bytes, number: int) -> bytes:
    return data[(number - 1) * SIZE : number * SIZE].ljust(SIZE, b"\0")
