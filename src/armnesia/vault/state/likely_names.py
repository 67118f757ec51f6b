"""Names in a request that the vault may hold in another spelling.

A vault knows people by keyed digests, which cannot be compared for likeness. So some likely spellings of a
name without records are digested and looked up. If one has records, the request is refused and names it.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from armnesia.core.errors import SimilarNameError, VaultError
from armnesia.core.identifiers import UserType
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.state.transaction import Transaction

_NUMBER_AT_END = re.compile(r"(.*[^0-9.])?([0-9]{1,18})", re.DOTALL)
_WIDTHS = range(1, 11)
"""How many digits numbers are filled up to with zeros."""
_WHOLE = re.compile(r"[+]?(-?)0*([0-9]+)(?:\.0*)?")
_SHOWN = 3


def likely_spellings(name: str) -> list[str]:
    """Spellings that a name may have been given instead: another case, other zeros, `-` for `_`, or a part.

    >>> likely_spellings("Ann_7")
    ['ann_7', 'ANN_7', 'Ann-7', 'Ann_07', 'Ann_007', 'Ann_0007', 'Ann_00007', 'Ann_000007', 'Ann_0000007',
    'Ann_00000007', 'Ann_000000007', 'Ann_0000000007']
    >>> likely_spellings("7.0"), likely_spellings("7, Ann")[-2:]
    (['7'], ['7', 'Ann'])
    >>> likely_spellings("ann lee@EX.org")
    ['ann lee@ex.org', 'ANN LEE@EX.ORG', 'Ann Lee@ex.org', 'Ann lee@ex.org']
    """
    return [each for each in dict.fromkeys(_spellings(name)) if each != name]


def _spellings(name: str) -> Iterator[str]:
    local, at, domain = name.rpartition("@")
    titled = f"{local.title()}@{domain.lower()}" if at else name.title()
    yield from (name.strip(), unicodedata.normalize("NFC", name))
    yield from (name.lower(), name.upper(), titled, name.capitalize())
    yield from (name.replace("_", "-"), name.replace("-", "_"))
    yield from map(str.strip, name.split(","))  # several names, given as one
    if (whole := _WHOLE.fullmatch(name)) is not None:
        yield from (f"{whole[1]}{whole[2]}", f"{whole[1]}{whole[2]}.0")
    if (numbered := _NUMBER_AT_END.fullmatch(name)) is not None:
        before, digits = numbered[1] or "", numbered[2].lstrip("0")
        yield from (before + digits.zfill(width) for width in _WIDTHS)


def refuse_other_spellings(
    transaction: Transaction,
    target: ErasureTarget,
    missing: Sequence[str],
    holds: Callable[[list[bytes]], set[bytes]],
) -> None:
    """Refuse a request if the vault holds records of a likely spelling of a name that it holds none of.

    `missing` are the names that have no records; `holds` says which row keys have some.
    """
    nobody = len(missing) == len(target.names)
    if target.kind == "record" and nobody and not transaction.state.configuration.may_have_ids:
        raise VaultError(
            "no row of this vault has an id, because its sources have no id column (--id-column):"
            " rows can be forgotten by their user only; nothing was changed"
        )
    if target.kind == "user" and transaction.state.configuration.user_type is not UserType.TEXT:
        return  # all spellings of an integer are one name
    asked = {spelling: name for name in missing for spelling in likely_spellings(name)}
    own = set(target.names)
    others = tuple(spelling for spelling in asked if spelling not in own)
    other = replace(target, names=others)
    found = holds(other.row_keys(transaction.keyring)) if others else set()
    similar: dict[str, tuple[str, ...]] = {}
    for spelling, key in zip(others, other.row_keys(transaction.keyring), strict=True):
        if key in found:
            similar[asked[spelling]] = (*similar.get(asked[spelling], ()), spelling)
    if similar:
        raise SimilarNameError(_refusal(target, similar), similar)


def _refusal(target: ErasureTarget, similar: dict[str, tuple[str, ...]]) -> str:
    shown = [
        f"{' and '.join(map(repr, spellings[:_SHOWN]))}, which may be {target.kind} {name!r}"
        for name, spellings in list(similar.items())[:_SHOWN]
    ]
    more = f", and of {len(similar) - _SHOWN} more" if len(similar) > _SHOWN else ""
    return (
        f"the vault holds rows of {', and of '.join(shown)}{more}: if they are the same, name them as the"
        " vault does, all in one request; if they are not, add exactly=True (--exactly); nothing was changed"
    )
