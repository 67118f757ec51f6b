"""A connection checks a seal once per state, stores all that was collected, and opens what it was told to."""

import pytest

from armnesia.core.errors import VaultError
from tests.databases import Place
from tests.vault.raw_vaults import dumped, filled


def test_rows_that_are_changed_after_opening_are_refused(place: Place) -> None:
    filled(place).close()
    with place.open() as vault, place.open() as other:
        vault.decide()
        with other.database.writing() as session:
            session.execute("UPDATE vault SET decisions = 7")
        for use in (vault.decide, vault.status):
            with pytest.raises(VaultError, match="were changed by something other than armnesia"):
                use()


def test_what_was_collected_and_not_stored_is_an_error(place: Place) -> None:
    with filled(place) as vault:
        before = dumped(vault)
        with pytest.raises(AssertionError, match="collected"), vault.writing() as transaction:
            transaction.append("policy")
        assert dumped(vault) == before
