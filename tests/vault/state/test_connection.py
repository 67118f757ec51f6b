"""A connection checks a seal once per state, stores all that was collected, and opens what it was told to."""

import pytest

from armnesia.core.errors import VaultError
from tests.databases import Place
from tests.vault.raw_vaults import filled


def test_rows_that_are_changed_after_opening_are_refused(place: Place) -> None:
    filled(place).close()
    with place.open() as vault, place.open() as other:
        vault.decide()
        with other.database.writing() as session:
            session.execute("UPDATE vault SET decisions = 7")
        for use in (vault.decide, vault.status):
            with pytest.raises(VaultError, match="were changed by something other than armnesia"):
                use()
