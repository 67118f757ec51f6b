"""What several methods would do with a request: the same as one by one, with one look-up."""

from typing import Any

import pytest

from armnesia.core.errors import ArmnesiaError, InvalidInputError, SimilarNameError
from armnesia.privacy import Level
from armnesia.unlearners import UNLEARNERS
from armnesia.vault import Configuration, Policy, Preview, UserType, Vault
from armnesia.vault.state.records import Records
from tests.databases import Place
from tests.vault.operations.test_forget_many import log
from tests.vault.raw_vaults import filled

METHODS: list[dict[str, Any]] = [
    {},
    *({"unlearner": name, "epsilon": 1.0, "delta": 0.01} for name in UNLEARNERS),
    {"unlearner": "tilt", "epsilon": -1.0},
]
POLICY = Policy(1.0, 0.01, tuple(Level), beyond="refuse")


def one_by_one(vault: Vault, users: list[str]) -> list[Any]:
    found: list[Any] = []
    for method in METHODS:
        try:
            found.append(vault.preview(users=users, **method).to_dict())
        except ArmnesiaError as error:
            found.append((type(error), str(error)))
    return found


@pytest.mark.parametrize("by", [(), ("page",)])
@pytest.mark.parametrize("users", [["u1"], ["u1", "u2", "nobody"], ["nobody"]])
def test_methods_together_are_as_one_by_one(place: Place, by: tuple[str, ...], users: list[str]) -> None:
    configuration = Configuration(actions=("A", "B", "C"), by=by, user_type=UserType.TEXT, policy=POLICY)
    with place.create(configuration) as vault:
        vault.ingest(log(), user="user", id="id")
        found = vault.preview_methods(users=users, methods=METHODS)
        told = [each.to_dict() if isinstance(each, Preview) else (type(each), str(each)) for each in found]
        assert told == one_by_one(vault, users)
        assert any(isinstance(each, ArmnesiaError) for each in found)


def test_the_people_are_looked_up_once(sqlite_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with filled(sqlite_place) as vault:
        real, calls = Records.find, list[int]()

        def counted(*arguments: Any) -> Any:
            calls.append(1)
            return real(*arguments)

        monkeypatch.setattr(Records, "find", counted)
        found = vault.preview_methods(users=["ann"], methods=METHODS)
        assert (len(found), len(calls)) == (len(METHODS), 1)


def test_a_refused_method_has_its_error_in_its_place(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        own, refused = vault.preview_methods(users=["ann"], methods=[{}, {"epsilon": -1.0}])
        assert isinstance(own, Preview)
        assert isinstance(refused, InvalidInputError)
        with pytest.raises(SimilarNameError):
            vault.preview_methods(users=["Ann"], methods=[{}])
        (exactly,) = vault.preview_methods(users=["Ann"], methods=[{}], exactly=True)
        assert isinstance(exactly, Preview)
        assert exactly.held == 0
        assert vault.preview_methods(users=["ann"], methods=[]) == []
