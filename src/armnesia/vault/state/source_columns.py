"""Which columns a vault has its actions, rewards and ids from: others are not mixed with them unnoticed."""

import json
from typing import Any

from armnesia.core.errors import OtherColumnsError
from armnesia.core.messages import listed
from armnesia.logs import Source
from armnesia.vault.state.diagnosis import changed_values
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session


def columns_of(source: Source) -> dict[str, str | None]:
    """The columns of a source that later sources are compared with, and the delimiter that was given.

    It may have no user column; None says that it has no id column.
    """
    delimiter = getattr(source, "delimiter", None)  # of CSV files
    given = {} if delimiter is None else {"delimiter": delimiter}
    return {**source.columns.named(), "id": source.columns.id, **given}


def saved_columns(session: Session) -> dict[str, str]:
    """By its role, the column that all sources so far have had, so that the next one need not name it.

    The delimiter of their files is among them, if one was given.
    """
    described = _described_columns(session)
    return {
        role: str(name)
        for role, name in (described[0] if described else {}).items()
        if name is not None and all(columns.get(role) == name for columns in described)
    }


def known_columns(session: Session, role: str) -> list[str]:
    """The columns that have had a role in the sources so far."""
    return sorted(name for name in _stored_columns(session, role) if name)


def may_have_ids(session: Session) -> bool:
    """Whether rows may have come in by an id: not if every source is known to have had no id column."""
    stored = _described_columns(session)
    return not stored or any(columns.get("id", "not stored") is not None for columns in stored)


def _described_columns(session: Session) -> list[dict[str, Any]]:
    try:
        described = [json.loads(text)["columns"] for _, text in tables.read_table(session, "source")]
        return [dict(columns) for columns in described]
    except (ValueError, TypeError, LookupError, AttributeError):
        raise changed_values() from None


def _stored_columns(session: Session, role: str) -> set[Any]:
    """What is stored of a role, None included."""
    try:
        return {columns[role] for columns in _described_columns(session) if role in columns}
    except TypeError:
        raise changed_values() from None


def refuse_other_columns(session: Session, source: Source) -> None:
    """Refuse a source whose actions or rewards are in another column than those of earlier sources.

    A vault that was filled before columns were stored has none, and accepts any. Users are compared row by
    row.
    """
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
    stored, name = _stored_columns(session, "id"), source.columns.id
    if not stored or bool(name) in map(bool, stored):
        return
    if name is None:
        known = known_columns(session, "id")
        found = f"the vault knows its rows by the ids in column {listed(known)}, and this source has none"
        remedy = "name the id column (--id-column)"
    else:
        known = []
        found = f"the vault knows its rows by their contents, and would know those of this source by {name!r}"
        remedy = "leave the id column (--id-column) out, as before"
    raise OtherColumnsError(
        f"{found}, so that rows which are there already would count twice: {remedy}; or, if none of the rows"
        " is in the vault, say so with other_ids=True (--other-ids); nothing was ingested",
        "id",
        known,
    )
