"""Which columns a vault has its actions and rewards from: other columns are not mixed with them unnoticed."""

import json

from armnesia.core.errors import VaultError
from armnesia.core.messages import listed
from armnesia.logs import Source
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session

ROLES = ("action", "reward")
"""What is compared; the user column is compared row by row."""


def columns_of(source: Source) -> dict[str, str]:
    """The columns of a source that later sources are compared with."""
    named = source.columns.named()
    return {role: named[role] for role in ROLES}


def refuse_other_columns(session: Session, source: Source) -> None:
    """Refuse a source whose actions or rewards are in another column than those of earlier sources.

    A vault that was filled before columns were stored has none, and accepts any.
    """
    known = [json.loads(description)["columns"] for _, description in tables.read_table(session, "source")]
    for role, name in columns_of(source).items():
        names = sorted({columns[role] for columns in known})
        if names and name not in names:
            raise VaultError(
                f"the vault has its {role}s from column {listed(names)}, and this source would bring them"
                f" from column {name!r}: name the same column (--{role}-column), or make another vault for"
                " another metric; if both columns mean the same, say so with other_columns=True"
                " (--other-columns); nothing was ingested"
            )
