"""What the rows of a source complete in the configuration of a vault: columns, and how people are named.

All sources of a vault have the columns of the first: rows of another metric are not mixed with its own, and a
row is known again by its id, or by its content where there are no ids.
"""

from armnesia.core.errors import OtherColumnsError
from armnesia.core.identifiers import UserType
from armnesia.logs import Source
from armnesia.vault.configuration import COLUMNS, Configuration


def columns_with(configuration: Configuration, source: Source) -> dict[str, str]:
    """The columns of a vault with those of a source; refused where the vault has another one."""
    known, address = configuration.columns, source.address()
    own = {role: name for role in COLUMNS if (name := address[role]) is not None}
    for role in [role for role in COLUMNS if known and role in own]:
        if role == "id" and role not in known:
            raise OtherColumnsError(
                "the vault knows its rows by their contents, and would not recognise them by an id: leave the"
                " id column (--id-column) out, as before, or make another vault; nothing was ingested",
                role,
            )
        if known.get(role, own[role]) != own[role]:
            raise OtherColumnsError(
                f"the vault has its {role}s from column {known[role]!r}, and this source from"
                f" column {own[role]!r}: rename it or read a view, if it means the same; another metric needs"
                " another vault; nothing was ingested",
                role,
                known[role],
            )
    return {**own, **known}


def user_type_for(configuration: Configuration, source: Source) -> UserType | None:
    """How the vault names people; if that is not fixed yet, as this source does, if it names any."""
    if configuration.user_type is not None or source.columns.user is None:
        return configuration.user_type
    with source.reading() as reading:
        return reading.user_type()
