"""What an ingest did."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from armnesia.core.identifiers import UserType
from armnesia.vault.ledger.certificate import Erasure
from armnesia.vault.ledger.ledger import Head


@dataclass(frozen=True)
class Ingested:
    """What an ingest did with the rows of a source, or with `dry_run` would do: then nothing was written.

    `user_column` and `id_column` are the columns of the user and the id, None if the rows have none;
    `actions_fixed` are the actions, and
    `user_type_fixed` is how people are named, that this ingest fixed, if the vault had none declared.
    """

    rows: int
    added: int
    already_there: int
    suppressed: int
    served: Any
    head: Head
    user_column: str | None = None
    id_column: str | None = None
    actions_fixed: tuple[Hashable, ...] | None = None
    user_type_fixed: UserType | None = None
    dry_run: bool = False
    decisions: int | None = None
    """How many decisions the vault has now; None in a vault without key columns."""
    replaced: int = 0
    """How many rows came in the place of a record with the same id."""
    erasure: Erasure | None = None
    """Whether what they replaced has left the database's files; None if nothing was replaced."""
    recounted_because: str | None = None
    """In an external vault, why all sources were counted again; None if only new rows were counted.

    Then `added` is how many more records there are, which may be fewer than 0.
    """

    @property
    def recounted(self) -> bool:
        """Whether all sources of an external vault were counted again."""
        return self.recounted_because is not None

    def to_dict(self) -> dict[str, Any]:
        """All fields, `user_type_fixed` and `head` as text.

        `decisions` is left out where there is one only, `erasure` where nothing was replaced, and `recounted`
        and `recounted_because` where only new rows were counted.
        """
        optional = {name: getattr(self, name) for name in ("decisions", "erasure", "recounted_because")}
        fields = {name: value for name, value in vars(self).items() if name not in optional}
        fields |= {name: value for name, value in optional.items() if value is not None}
        if self.recounted:
            fields["recounted"] = True
        fixed = {
            "actions_fixed": None if self.actions_fixed is None else list(self.actions_fixed),
            "user_type_fixed": None if self.user_type_fixed is None else str(self.user_type_fixed),
        }
        return {**fields, **fixed, "head": str(self.head)}
