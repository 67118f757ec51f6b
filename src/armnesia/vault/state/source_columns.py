"""What earlier sources of a vault have fixed: columns, actions, and how people are named.

Rows from other columns are not mixed with them unnoticed.
"""

import json
from dataclasses import replace
from typing import Any

from armnesia.core.errors import OtherColumnsError, VaultError
from armnesia.core.identifiers import UserType
from armnesia.core.messages import listed
from armnesia.logs import Source
from armnesia.vault.configuration import Configuration
from armnesia.vault.state.sealed_state import State, changed_values
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import SourceRow

ROLES = ("action", "reward", "user", "id")


def columns_of(source: Source) -> dict[str, str | None]:
    """The column of each role, and the delimiter that was given, by which later sources are compared."""
    return {name: value for name, value in source.address().items() if name in (*ROLES, "delimiter")}


def _columns_of_all(session: Session) -> list[dict[str, Any]]:
    """The columns of every source so far: alone where the vault has the rows, else in its address."""
    try:
        described = [json.loads(text) for _, text in tables.read(session, SourceRow)]
        found = [each.get("columns") or each["address"] for each in described]
        columns = [{role: each[role] for role in (*ROLES, "delimiter")} for each in found]
        if all(isinstance(name, str | None) for each in columns for name in each.values()):
            return columns
        raise TypeError
    except (ValueError, TypeError, LookupError, AttributeError):
        raise changed_values() from None


def saved_columns(session: Session) -> dict[str, str]:
    """By its role, the column that all sources so far have had, so that the next one need not name it.

    The delimiter of their files is among them, if one was given.
    """
    first, *others = _columns_of_all(session) or [{}]
    return {
        role: str(name)
        for role, name in first.items()
        if name is not None and all(columns[role] == name for columns in others)
    }


def known_columns(session: Session, role: str) -> list[str]:
    """The columns that have had a role in the sources so far."""
    return sorted({columns[role] for columns in _columns_of_all(session)} - {None})


def may_have_ids(session: Session) -> bool:
    """Whether rows may have come in by an id: not if every source is known to have had no id column."""
    stored = _columns_of_all(session)
    return not stored or any(columns["id"] is not None for columns in stored)


def refuse_other_columns(session: Session, source: Source) -> None:
    """Refuse a source whose actions or rewards are in another column than those of earlier sources."""
    for role, name in (("action", source.columns.action), ("reward", source.columns.reward)):
        names = known_columns(session, role)
        if names and name not in names:
            raise OtherColumnsError(
                f"the vault has its {role}s from column {listed(names)}, and this source would bring them"
                f" from column {name!r}: name the same column (--{role}-column), or make another vault for"
                " another metric; if both columns mean the same, say so with other_columns=True"
                " (--other-columns); nothing was ingested",
                role,
                names,
            )


def refuse_other_ids(session: Session, source: Source) -> None:
    """Refuse a source without an id column where earlier ones had one, or the reverse.

    A row that came in by its id is not recognised by its content, and would count twice.
    """
    stored, name = [columns["id"] for columns in _columns_of_all(session)], source.columns.id
    if not stored or bool(name) in map(bool, stored):
        return
    known = known_columns(session, "id")
    if name is None:
        found = f"the vault knows its rows by the ids in column {listed(known)}, and this source has none"
        remedy = "name the id column (--id-column)"
    else:
        found = f"the vault knows its rows by their contents, and would know those of this source by {name!r}"
        remedy = "leave the id column (--id-column) out, as before"
    raise OtherColumnsError(
        f"{found}, so that rows which are there already would count twice: {remedy}; or, if none of the rows"
        " is in the vault, say so with other_ids=True (--other-ids); nothing was ingested",
        "id",
        known,
    )


def with_actions(state: State, actions: tuple[Any, ...]) -> State:
    """Fix the actions if they are not fixed yet; refuse if another ingest has fixed others meanwhile."""
    configuration = state.configuration
    if configuration.actions is None:
        configuration = replace(configuration, actions=actions)
    elif configuration.actions != actions:
        raise VaultError("the vault's actions were changed meanwhile; ingest again")
    return replace(state, configuration=configuration)


def with_user_type(state: State, user_type: UserType | None) -> State:
    """Fix how people are named, if it is not fixed yet; refuse if another ingest has fixed it otherwise."""
    configuration = state.configuration
    if user_type in (None, configuration.user_type):
        return state
    if configuration.user_type is not None:
        raise VaultError("another ingest has fixed how people are named meanwhile; ingest again")
    return replace(state, configuration=replace(configuration, user_type=user_type))


def append_fixed(transaction: Transaction, configuration: Configuration) -> None:
    """Note in the ledger what an ingest has fixed: the actions, and how people are named."""
    before = transaction.state.configuration
    if before.actions is None:
        transaction.append("actions", configuration=configuration)
    if configuration.user_type != before.user_type:
        transaction.append("user_type", configuration=configuration)


def user_type_for(state: State, source: Source) -> UserType | None:
    """How the vault names people; if that is not fixed yet, as this source does, if it names any."""
    if state.configuration.user_type is not None or source.columns.user is None:
        return state.configuration.user_type
    with source.reading() as reading:
        return reading.user_type()
