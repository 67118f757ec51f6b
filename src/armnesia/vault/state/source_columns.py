"""Which columns a vault has its actions and rewards from: other columns are not mixed with them unnoticed."""

import json

from armnesia.core.errors import OtherColumnsError
from armnesia.core.messages import listed
from armnesia.logs import Source
from armnesia.vault.state.diagnosis import changed_values
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session

ROLES = ("action", "reward", "user")


def columns_of(source: Source) -> dict[str, str]:
    """The columns of a source that later sources are compared with; a source may have no user column."""
    return {role: name for role, name in source.columns.named().items() if role in ROLES}


def known_columns(session: Session, role: str) -> list[str]:
    """The columns that have had a role in the sources so far."""
    try:
        described = [json.loads(text)["columns"] for _, text in tables.read_table(session, "source")]
        return sorted({columns[role] for columns in described if columns.get(role)})
    except (ValueError, TypeError, LookupError, AttributeError):
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
