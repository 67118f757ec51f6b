"""Names in a request that the vault may hold in another spelling.

A certificate that nothing is held of `1` would be misleading while rows of `1.0` are in the vault. The vault
knows people by keyed digests only, so the likely spellings of a name are digested and looked up.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from armnesia.core.errors import SimilarNameError
from armnesia.core.identifiers import UserType
from armnesia.core.near_spellings import near_spellings, same_spellings
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables

_AT_ONCE = 2000
"""Spellings that are looked up together."""
_SHOWN = 3


def refuse_similar_names(
    transaction: Transaction, target: ErasureTarget, held: Collection[bytes], forgotten: Collection[bytes]
) -> None:
    """Refuse a request if the vault holds rows of another spelling of one of its names.

    `held` are the row keys of the names that have rows: of those, only spellings count that programs make of
    a name. `forgotten` are the row keys of names that are on the suppression list and have no rows.
    """
    user_type = transaction.state.configuration.user_type
    if target.users and user_type is UserType.INTEGER:
        return  # all spellings of an integer are one name
    names = dict(zip(target.row_keys(transaction.ring), target.names, strict=True))
    spellings = (
        (name, spelling)
        for key, name in names.items()
        if key in held or key not in forgotten
        for spelling in (same_spellings(name) if key in held else near_spellings(name))
    )
    similar: dict[str, tuple[str, ...]] = {}
    for name, spelling in _with_rows(transaction, target, spellings, user_type, names.keys()):
        similar[name] = (*similar.get(name, ()), spelling)
    if similar:
        raise SimilarNameError(_refusal(target, similar), similar)


def _with_rows(
    transaction: Transaction,
    target: ErasureTarget,
    spellings: Iterable[tuple[str, str]],
    user_type: UserType | None,
    named: Collection[bytes],
) -> Iterator[tuple[str, str]]:
    """Those of the spellings under which the vault holds rows, other than the names of the request."""
    remaining = iter(spellings)
    while some := list(islice(remaining, _AT_ONCE)):
        keys: dict[bytes, tuple[str, str]] = {}
        for name, spelling in some:
            key = row_key(target, spelling, user_type, transaction.ring)
            if key is not None and key not in named:
                keys.setdefault(key, (name, spelling))
        for key in tables.keys_with_records(transaction.session, target.row_column, list(keys)):
            yield keys[key]


def row_key(target: ErasureTarget, spelling: str, user_type: UserType | None, ring: Keyring) -> bytes | None:
    """The row key of a spelling; None if there can be no rows under it."""
    if not target.users:
        return ring.record_identity("id", spelling)
    name = (user_type or UserType.TEXT).normalised(spelling)
    return ring.owner_digest(name) if name else None


def similar_forgotten(transaction: Transaction, target: ErasureTarget, names: Iterable[str]) -> str:
    """Words on spellings of these names that are on the suppression list; empty if there are none."""
    ring, user_type = transaction.ring, transaction.state.configuration.user_type
    spelling_of: dict[bytes, str] = {}
    for name in islice(names, _SHOWN):
        for spelling in near_spellings(name):
            key = row_key(target, spelling, user_type, ring)
            if key is not None:
                digest = ring.digest_of_owner(key) if target.users else ring.suppressed_record_digest(key)
                spelling_of.setdefault(digest, spelling)
    found = tables.suppressed_among(transaction.session, list(spelling_of))
    listed = [repr(spelling) for digest, spelling in spelling_of.items() if digest in found]
    return f"; similar names that were forgotten: {', '.join(listed[:_SHOWN])}" if listed else ""


def _refusal(target: ErasureTarget, similar: dict[str, tuple[str, ...]]) -> str:
    kind = "user" if target.users else "record"
    shown = [
        f"{' and '.join(map(repr, spellings[:_SHOWN]))}, which may be {kind} {name!r}"
        for name, spellings in list(similar.items())[:_SHOWN]
    ]
    more = f", and of {len(similar) - _SHOWN} more" if len(similar) > _SHOWN else ""
    return (
        f"the vault holds rows of {', and of '.join(shown)}{more}: name each as the vault does, and all that"
        " are one in the same request; or state by exactly=True (--exactly) that they are others; nothing was"
        " changed"
    )
