"""What an ingested source gives reason to warn of."""

import warnings

from armnesia.logs import Source
from armnesia.vault.results.ingested import Ingested
from armnesia.vault.state.incoming_rows import Rows
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables


class SourceRemarks:
    """Notes, chunk by chunk, what is remarkable about the names, ids and people of a source.

    If nearly all of its first people have rows in the vault already, but no row is recognised, the source may
    be an earlier one in another form.
    """

    most, fewest, share = 10_000, 20, 0.9

    def __init__(self, state: State, source: Source, odd_names: tuple[int | None, int | None]) -> None:
        filled = state.n_decisions > 0 and (state.decision is None or any(state.decision.statistics.counts))
        self._source = source
        self._float_row, self._spaced_row = odd_names
        self._asked = filled and source.columns.id is None and source.columns.user is not None
        self._people: set[str] = set()
        self._known = 0
        self._float_id_row: int | None = None

    def read(self, transaction: Transaction, rows: Rows) -> None:
        """Look at a chunk before its rows are added."""
        if self._float_id_row is None and rows.float_ids:
            self._float_id_row = rows.positions[min(rows.float_ids)]
        if not self._asked or len(self._people) >= self.most:
            return
        new = [user for user in dict.fromkeys(rows.users) if user is not None and user not in self._people]
        new = new[: self.most - len(self._people)]
        self._people.update(new)
        owners = [transaction.keyring.owner_digest(user) for user in new]
        self._known += len(tables.keys_with_records(transaction.session, "owner", owners))

    def warn(self, result: Ingested) -> None:
        """Warn of what was noted, now that all rows were read."""
        for remark in (self._float_ids(), *self._odd_names(), self._nothing_known(result)):
            if remark is not None:
                warnings.warn(remark, stacklevel=4)

    def _float_ids(self) -> str | None:
        if self._float_id_row is None:
            return None
        return (
            f"{self._source.described('id')} looks like integers that became floats, such as 7.0 for 7, first"
            f" in row {self._float_id_row}: 7 and 7.0 are two ids"
        )

    def _odd_names(self) -> list[str]:
        """A user column may not hold the names of people as they are known elsewhere."""
        column, found = self._source.described, []
        if self._float_row is not None:
            found.append(
                f"{column('user')} looks like integers that became floats, such as 7.0 for 7, first in row"
                f" {self._float_row}: this vault names people by text, so that 7 and 7.0 are two"
                " people; to name them by integers, create a vault with user_type='integer' (init"
                " --user-type integer)"
            )
        if self._spaced_row is not None:
            found.append(
                f"{column('user')} has white space around names, first in row {self._spaced_row}: in"
                " this vault it is not part of a name"
            )
        return found

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
