"""A request spells a name otherwise than the log did: a certificate that nothing is held would be false."""

import random
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from armnesia.core.errors import ArmnesiaError
from armnesia.vault import Configuration, UserType, Vault
from tests.red_team.attacks import Trial, Verdict

FIRST = ("ann", "fiona", "rosa", "thomas", "jesse")
LAST = ("lee", "strasse", "mason", "field", "costa")
_DISGUISES: dict[str, Callable[[str], str]] = {
    "upper case": str.upper,
    "title case": str.title,
    "spaces within": lambda name: name.replace(" ", "  "),
    "no space": lambda name: name.replace(" ", ""),
    "a hyphen": lambda name: name.replace(" ", "-"),
    "a dot": lambda name: name.replace(" ", "."),
    "a zero-width space after": lambda name: f"{name}\u200b",
    "a byte order mark before": lambda name: f"\ufeff{name}",
    "a null character after": lambda name: f"{name}\0",
    "quotes": lambda name: f'"{name}"',
    "typographic quotes": lambda name: f"\u201c{name}\u201d",
    "wide letters": lambda name: "".join(chr(ord(c) + 0xFEE0) if c != " " else "\u3000" for c in name),
    "a ligature": lambda name: name.replace("fi", "\ufb01").replace("st", "\ufb06", 1),
    "sharp s": lambda name: name.replace("ss", "\u00df").title(),
    "one Cyrillic letter": lambda name: name.replace("a", "\u0430", 1),
    "Cyrillic letters": lambda name: name.translate(str.maketrans("aeopcyxijs", "аеорсухіјѕ")),
    "a decimal point": lambda name: f"{name}.0",
    "two decimals": lambda name: f"{name}.00",
    "a plus sign": lambda name: f"+{name}",
    "leading zeros": lambda name: name.zfill(8),
    "thousands": lambda name: f"{int(name):,}",
    "an exponent": lambda name: f"{float(name):e}",
    "wide digits": lambda name: "".join(chr(ord(c) + 0xFEE0) for c in name),
}
_OF_NUMBERS = {
    *("a decimal point", "two decimals", "a plus sign", "leading zeros"),
    *("thousands", "an exponent", "wide digits"),
}


def spellings(trials: int, seed: int) -> Iterator[Trial]:
    """Hold names in disguise and ask for them plainly, or hold them plainly and ask in disguise."""
    draw = random.Random(seed)
    for trial in range(trials):
        what = list(_DISGUISES)[trial % len(_DISGUISES)]
        number = str(draw.randrange(1, 10**4) * 1000) if what in _OF_NUMBERS else None
        plain = number or f"{draw.choice(FIRST)} {draw.choice(LAST)}"
        pair = [plain, _DISGUISES[what](plain)]
        draw.shuffle(pair)
        yield _trial(f"{what}: {pair[0]!a} for {pair[1]!a}", *pair)


def _trial(what: str, held: str, asked: str) -> Trial:
    """Nobody but this person is held, so that no other similar name is the reason of a refusal."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        url = f"sqlite:///{Path(folder)}/vault.db"
        configuration = Configuration(actions=("A", "B"), user_type=UserType.TEXT)
        with Vault.create(url, configuration) as vault:
            log = {"action": ["A", "B"], "reward": [1, 0], "user": [held, "zoe"], "id": [1, 2]}
            vault.ingest(log, user="user", id="id")
            if vault.forget(users=["quite another"]).held:
                return Trial(what, Verdict.MISSED, "a stranger was held")
            try:
                done = vault.forget(users=[asked])
            except ArmnesiaError as error:
                return Trial(what, Verdict.REFUSED, str(error))
    if done.held:
        return Trial(what, Verdict.NO_EFFECT)
    return Trial(what, Verdict.MISSED, f"{held!r} is held, and nothing was certified to be held of {asked!r}")
