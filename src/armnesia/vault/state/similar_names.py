"""Names in a request that the vault may hold in another spelling.

A certificate that nothing is held of `1` would be misleading while rows of `1.0` are in the vault. The vault
knows people by keyed digests only, so the likely spellings of a name are digested and looked up.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import islice

from armnesia.core.errors import InvalidNameError, SimilarNameError, VaultError
from armnesia.core.identifiers import UserType
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.near_spellings import (
    MOST_SPELLINGS,
    has_control_characters,
    near_spellings,
    spellings_of_held,
)
from armnesia.vault.state.source_columns import known_columns, may_have_ids
from armnesia.vault.state.suppression import RequestHistory
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables

_AT_ONCE = 2000
"""Spellings that are looked up together."""
_SHOWN = 3
_MANY = 10
"""Names: a request for more is compared before the lock is taken, which takes some milliseconds each."""
_MOST_NOTED = 100
"""Names whose similar ones are looked for only to mention them: about a millisecond each."""
_MOST_OF_A_REQUEST, _LEAST_OF_ONE = 400_000, 400
"""Of all names of a request, and of each of very many: a name of 15 letters has fewer."""


def records_compared_before(connection: VaultConnection, target: ErasureTarget) -> int | None:
    """Compare a request for many names with the vault before the lock is taken; None if it has few names.

    Returns the digest of the records that it was compared with: if they are still the same under the lock, it
    need not be compared again.
    """
    if len(target.names) <= _MANY or not connection.records.layout.holds_rows:
        return None
    with connection.reading() as transaction:
        state, keys = transaction.state, transaction.keyring
        target = target.normalised(state.configuration.user_type)
        history = RequestHistory.read(transaction, target)
        held = tables.keys_with_records(transaction.session, target.row_column, target.row_keys(keys))
        if not history.answered_before:
            holds = partial(connection.records.keys_held, transaction, target, lookup=None)
            refuse_similar_names(transaction, target, held, history.suppressed, holds)
    return state.digests.record


def refuse_similar_names(
    transaction: Transaction,
    target: ErasureTarget,
    held: Collection[bytes],
    suppressed: Iterable[bool],
    holds: Callable[[list[bytes]], set[bytes]],
) -> None:
    """Refuse a request if the vault holds rows of another spelling of one of its names.

    `held` are the row keys of the names that have rows: of those, only spellings count that programs make of
    a name. A name without rows that is `suppressed` was forgotten before, by this spelling. `holds` says
    which row keys have rows.
    """
    user_type = transaction.state.configuration.user_type
    if target.users and user_type is UserType.INTEGER:
        return  # all spellings of an integer are one name
    keys = target.row_keys(transaction.keyring)
    named = [
        (name, key in held)
        for name, key, forgotten in zip(target.names, keys, suppressed, strict=True)
        if key in held or not forgotten
    ]
    most = min(MOST_SPELLINGS, max(_LEAST_OF_ONE, _MOST_OF_A_REQUEST // max(1, len(named))))
    near = partial(near_spellings, most=most)
    same = partial(spellings_of_held, of_user=bool(target.users), user_type=user_type)
    spellings = (
        (name, spelling) for name, has_rows in named for spelling in (same(name) if has_rows else near(name))
    )
    similar: dict[str, tuple[str, ...]] = {}
    for name, spelling in _with_rows(transaction, target, spellings, holds):
        similar[name] = (*similar.get(name, ()), spelling)
    if similar:
        raise SimilarNameError(_refusal(target, similar), similar)
    if target.records and not any(has_rows for _, has_rows in named):
        _refuse_ids_of_none(transaction, named)
    _refuse_odd_names(transaction, target, [name for name, has_rows in named if not has_rows])


def _with_rows(
    transaction: Transaction,
    target: ErasureTarget,
    spellings: Iterator[tuple[str, str]],
    holds: Callable[[list[bytes]], set[bytes]],
) -> Iterator[tuple[str, str]]:
    """The spellings, each with its name, that the vault holds rows of, and that the request does not name."""
    own = set(target.row_keys(transaction.keyring))
    while some := list(islice(spellings, _AT_ONCE)):
        found = _row_keys(transaction, target, some, excluded=own)
        held = holds(list(found)) if found else ()  # none if the vault spells them all alike
        yield from (one for key, one in found.items() if key in held)


def _refuse_odd_names(transaction: Transaction, target: ErasureTarget, without_rows: Collection[str]) -> None:
    """Refuse names without rows that may not be those of people as the log has them."""
    headers = known_columns(transaction.session, "user") if target.users and without_rows else ()
    for name in without_rows:
        if name in headers:
            raise InvalidNameError(
                f"{name!r} is the user column that the vault has its people from, and the vault holds no rows"
                " of such a name: if it is the header of a file of names, give --column; if it is a name,"
                " add exactly=True (--exactly); nothing was changed",
                name,
                "header",
            )
        if name in target.types:
            raise InvalidNameError(
                f"the name {name!r} was given as a value of type {target.types[name]}, which files may write"
                " otherwise, and the vault holds no rows of it: give the text that the log has, or state by"
                " exactly=True that this one is right; nothing was changed",
                name,
                "kind",
            )
        if has_control_characters(name):
            raise InvalidNameError(
                f"the name {name!r} has a control character, or an invisible one at an end, and the vault"
                " holds no rows of it: check how the names were read, or state by exactly=True (--exactly)"
                " that it is right; nothing was changed",
                name,
                "control",
            )


def _refuse_ids_of_none(transaction: Transaction, named: Collection[tuple[str, bool]]) -> None:
    """Refuse ids where no row came in by one: that nothing is held would be said of rows that are there."""
    if named and not may_have_ids(transaction.session):
        raise VaultError(
            "no row of this vault has an id, because its sources were ingested without an id column"
            " (--id-column): rows can be forgotten by their user only; if a later source brings these ids,"
            " add exactly=True (--exactly); nothing was changed"
        )


def similar_held(connection: VaultConnection, target: ErasureTarget) -> tuple[str, ...] | None:
    """Near spellings of the people of a request that the vault holds rows of, as the spellings list them.

    None if they are not compared: an external vault would have to read its sources, ids are compared exactly,
    and many names would take long.
    """
    if not 0 < len(target.users) <= _MOST_NOTED or not connection.records.layout.holds_rows:
        return None
    with connection.reading() as transaction:
        user_type = transaction.state.configuration.user_type
        if user_type is UserType.INTEGER:
            return ()  # all spellings of an integer are one name
        target = target.normalised(user_type)
        spellings = ((name, spelling) for name in target.users for spelling in near_spellings(name))
        holds = partial(connection.records.keys_held, transaction, target, lookup=None)
        similar = [spelling for _, spelling in _with_rows(transaction, target, spellings, holds)]
    return tuple(dict.fromkeys(similar))


def _row_keys(
    transaction: Transaction,
    target: ErasureTarget,
    spellings: Iterable[tuple[str, str]],
    excluded: Collection[bytes],
) -> dict[bytes, tuple[str, str]]:
    """The names and their spellings by the row keys of the spellings; several spellings may be one name."""
    keyring, user_type = transaction.keyring, transaction.state.configuration.user_type or UserType.TEXT
    if target.users:
        normalised = user_type.normalised
        first: dict[str, tuple[str, str]] = {}
        for one in spellings:
            first.setdefault(normalised(one[1]) or "", one)
        for name in ("", *target.users):
            first.pop(name, None)
        if not first:
            return {}
        found = zip(keyring.owner_digests(first), first.values(), strict=True)
    else:
        named = list(spellings)
        found = zip((keyring.record_identity("id", spelling) for _, spelling in named), named, strict=True)
    keys: dict[bytes, tuple[str, str]] = {}
    for key, one in found:
        if key not in excluded:
            keys.setdefault(key, one)
    return keys


def similar_forgotten(transaction: Transaction, target: ErasureTarget, names: Iterable[str]) -> str:
    """Words on spellings of these names that are on the suppression list; empty if there are none."""
    keyring = transaction.keyring
    spellings = ((name, spelling) for name in islice(names, _SHOWN) for spelling in near_spellings(name))
    own = set(target.row_keys(keyring))  # also " 1" if people are named by integers
    chained = keyring.digest_of_owner if target.users else keyring.suppressed_record_digest
    digests = {
        chained(key): spelling
        for key, (_, spelling) in _row_keys(transaction, target, spellings, excluded=own).items()
    }
    found = tables.suppressed_among(transaction.session, list(digests))
    listed = [_shown(spelling) for digest, spelling in digests.items() if digest in found]
    return f"; similar names that were forgotten: {', '.join(listed[:_SHOWN])}" if listed else ""


def _shown(name: str) -> str:
    """A name as a message shows it; letters outside ASCII also by number, because they may look alike.

    >>> print(_shown("ann"), _shown("caf" + chr(0xE9)))
    'ann' 'café' ('caf\\xe9')
    """
    return repr(name) if name.isascii() else f"{name!r} ({name!a})"


def _refusal(target: ErasureTarget, similar: dict[str, tuple[str, ...]]) -> str:
    kind = "user" if target.users else "record"
    shown = [
        f"{' and '.join(map(_shown, spellings[:_SHOWN]))}, which may be {kind} {name!r}"
        for name, spellings in list(similar.items())[:_SHOWN]
    ]
    more = f", and of {len(similar) - _SHOWN} more" if len(similar) > _SHOWN else ""
    return (
        f"the vault holds rows of {', and of '.join(shown)}{more}: if they are the same, name them as the"
        " vault does, all in one request; if they are not, add exactly=True (--exactly); nothing was changed"
    )
