"""Tokens of the service in the vault: stored as digests, and believed unless their table was changed."""

import re

import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.vault import Role, Token
from armnesia.vault.operations.tokens import token_digest
from tests.databases import Place
from tests.vault.raw_vaults import filled, values


def test_only_a_digest_is_stored(place: Place) -> None:
    with filled(place) as vault:
        made = vault.create_token("operator", name="nightly job", days=30)
        assert re.fullmatch(r"armnesia_[A-Za-z0-9_-]{43}", made.text)
        assert made.text not in repr(made)
        assert made.to_dict()["text"] == made.text
        rows = values(vault, "SELECT * FROM token")
        assert made.text not in str(rows)
        assert made.text.removeprefix("armnesia_") not in str(rows)
        (token,) = vault.tokens()
        assert token == made.token
        assert (token.number, token.role, token.name, token.uses) == (1, Role.OPERATOR, "nightly job", 0)
        assert "text" not in str(vault.tokens().to_dict())
        assert vault.tokens().find(token_digest(made.text)) == token
        assert vault.tokens().find(token_digest(made.text + "=")) is None
        assert vault.verify().holds


def test_numbers_are_not_given_again(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        first, second = vault.create_token("reader"), vault.create_token("reader")
        revoked = vault.revoke_token(second.token.number)
        assert revoked.revoked is not None
        assert vault.revoke_token(2) == revoked
        assert vault.tokens().find(token_digest(second.text)) is None
        assert vault.tokens().find(token_digest(first.text)) is not None
        assert vault.create_token("reader").token.number == 3
        with pytest.raises(InvalidInputError, match="there is no token 9; see armnesia token list"):
            vault.revoke_token(9)


@pytest.mark.parametrize(
    ("role", "options", "told"),
    [
        ("root", {}, "role must be reader, operator or admin; got 'root'"),
        ("reader", {"days": 0}, "days must be a whole number from 1 to 3650; got 0"),
        ("reader", {"days": True}, "days must be a whole number from 1 to 3650; got True"),
        ("reader", {"days": 1.5}, "days must be a whole number from 1 to 3650; got 1.5"),
        ("reader", {"name": "a\nb"}, "name must be at most 100 printable characters"),
        ("reader", {"name": "x" * 101}, "name must be at most 100 printable characters"),
    ],
)
def test_a_token_that_cannot_be(sqlite_place: Place, role: str, options: dict[str, int], told: str) -> None:
    with filled(sqlite_place) as vault:
        with pytest.raises(InvalidInputError, match=re.escape(told)):
            vault.create_token(role, **options)  # type: ignore[arg-type]
        assert len(vault.tokens()) == 0


def test_uses_are_added_up(place: Place) -> None:
    with filled(place) as vault:
        vault.create_token("reader")
        vault.note_token_uses({1: 2})
        vault.note_token_uses({1: 3, 7: 1})
        vault.note_token_uses({})
        (token,) = vault.tokens()
        assert (token.uses, len(token.last_used or "")) == (5, 10)


def test_each_role_may_do_what_those_before_it_may() -> None:
    roles = [Role.READER, Role.OPERATOR, Role.ADMIN]
    for place, role in enumerate(roles):
        assert [role.includes(other) for other in roles] == [other <= place for other in range(3)]
    assert (
        Token(1, Role.READER, "", "2026-01-01", "2026-01-02", revoked="2026-01-01").is_accepted("2026-01-01")
        is False
    )
