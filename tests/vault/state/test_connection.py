"""A connection checks a seal once per state, stores all that was collected, and opens what it was told to."""

from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.vault import Vault
from armnesia.vault.state.sealed_state import StoredState
from tests.databases import Place
from tests.vault.raw_vaults import dumped, filled


def test_rows_that_were_checked_at_opening_are_not_checked_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(place).close()
    checked: list[StoredState] = []
    check_seal = StoredState.check_seal

    def counting(self: StoredState, *keys: Any) -> Any:
        checked.append(self)
        return check_seal(self, *keys)

    monkeypatch.setattr(StoredState, "check_seal", counting)
    with place.open() as vault, place.open() as other:
        vault.decide()
        vault.status()
        assert len(checked) == 2  # once per connection
        other.change_policy(max_epsilon=1.0)
        vault.decide()
        assert len(checked) == 3


def test_rows_that_are_changed_after_opening_are_refused(place: Place) -> None:
    filled(place).close()
    with place.open() as vault, place.open() as other:
        vault.decide()
        with other._connection.database.writing() as session:
            session.execute("UPDATE decision SET statistics = replace(statistics, '[', '[1')")
        for use in (vault.decide, vault.status):
            with pytest.raises(VaultError, match="were changed by something other than armnesia"):
                use()


def test_what_was_collected_and_not_stored_is_an_error(place: Place) -> None:
    with filled(place) as vault:
        before = dumped(vault)
        with pytest.raises(AssertionError, match="collected"), vault._connection.writing() as transaction:
            transaction.append("policy", policy={})
        assert dumped(vault) == before


def test_an_unknown_way_to_open_is_refused(sqlite_place: Place) -> None:
    filled(sqlite_place).close()
    with pytest.raises(InvalidInputError, match="accept must be one of intact, damaged, any; got 'old'"):
        Vault.open(sqlite_place.url, keys=sqlite_place.keys, accept="old")  # type: ignore[arg-type]
