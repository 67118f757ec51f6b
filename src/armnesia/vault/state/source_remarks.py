"""What an ingested source gives reason to warn of."""

import warnings

from armnesia.logs import Source
from armnesia.vault.results import Ingested
from armnesia.vault.state.incoming_rows import Rows
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables


class SourceRemarks:
    """Notes, chunk by chunk, what is remarkable about the people of a source.

    If nearly all of its first people have rows in the vault already, but no row is recognised, the source may
    be an earlier one in another form.
    """

    most, fewest, share = 10_000, 20, 0.9

    def __init__(self, state: State, source: Source) -> None:
        self._asked = state.n_decisions > 0 and source.columns.id is None and source.columns.user is not None
        self._people: set[str] = set()
        self._known = 0

    def read(self, transaction: Transaction, rows: Rows) -> None:
        """Look at a chunk before its rows are added."""
        if not self._asked or len(self._people) >= self.most:
            return
        new = [user for user in dict.fromkeys(rows.users) if user is not None and user not in self._people]
        new = new[: self.most - len(self._people)]
        self._people.update(new)
        owners = transaction.keyring.owner_digests(new)
        self._known += len(tables.values_of_records(transaction.session, "owner", owners))

    def warn(self, result: Ingested) -> None:
        """Warn of what was noted, now that all rows were read."""
        remark = self._nothing_known(result)
        if remark is not None:
            warnings.warn(remark, stacklevel=4)

    def _nothing_known(self, result: Ingested) -> str | None:
        """The rows may be counted twice."""
        number = len(self._people)
        if number < self.fewest or self._known < self.share * number:
            return None
        if not result.added or result.already_there:
            return None
        looked_up = f"the first {number}" if number == self.most else str(number)
        return (
            f"none of the {result.added} rows is known, but {self._known} of {looked_up} people have rows"
            " already: if this is the same log in another form, every row"
            f" {'would count' if result.dry_run else 'now counts'} twice (no id column to recognise them by)"
        )
