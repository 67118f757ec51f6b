"""Tokens of the service in the vault: stored as digests, and believed under the seal of the keys only."""

import re

import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.vault import Role, Token, Vault
from tests.databases import Place, fresh_place
from tests.vault.raw_vaults import change, filled, values


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
        assert vault.tokens().find(made.text) == token
        assert vault.tokens().find(made.text + "=") is None
        assert vault.verify().holds


def test_numbers_are_not_given_again(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        first, second = vault.create_token("reader"), vault.create_token("reader")
        revoked = vault.revoke_token(second.token.number)
        assert revoked.revoked is not None
        assert vault.revoke_token(2) == revoked
        assert vault.tokens().find(second.text) is None
        assert vault.tokens().find(first.text) is not None
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


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE token SET facts = replace(facts, 'reader', 'admin')",
        "UPDATE token SET digest = zeroblob(32) WHERE number = 1",
        "UPDATE token SET number = 5 WHERE number = 1",
        "UPDATE token SET seal = (SELECT seal FROM token WHERE number = 2)",
        "UPDATE token SET facts = '{}'",
    ],
)
def test_a_row_of_something_else_is_not_believed_and_noticed(sqlite_place: Place, statement: str) -> None:
    with filled(sqlite_place) as vault:
        made = vault.create_token("reader")
        vault.create_token("operator")
        change(vault, statement)
        assert vault.tokens().find(made.text) is None
        problems = vault.verify().problems
        assert problems
        assert all(problem.startswith("tokens: token ") for problem in problems)


def test_a_token_of_another_vault_is_not_believed(sqlite_place: Place) -> None:
    other = fresh_place("sqlite", sqlite_place.path.parent)
    with filled(sqlite_place) as vault, filled(other) as second:
        made = second.create_token("admin")
        (row,) = values(second, "SELECT * FROM token")
        change(vault, "INSERT INTO token VALUES (?, ?, ?, ?, ?, ?)", *row)
        assert vault.tokens().find(made.text) is None


def test_tokens_outlive_a_rotation_of_the_keys(place: Place) -> None:
    with filled(place) as vault:
        made, forged = vault.create_token("reader"), vault.create_token("reader")
        change(vault, "UPDATE token SET facts = replace(facts, 'reader', 'admin') WHERE number = 2")
        before = values(vault, "SELECT seal FROM token ORDER BY number")
        vault.rotate_digest_key()
        after = values(vault, "SELECT seal FROM token ORDER BY number")
        assert (before[0] != after[0], before[1] == after[1]) == (True, True)
        assert vault.tokens().find(made.text) == made.token
        assert vault.tokens().find(forged.text) is None
        vault.rotate_signing_key()
        assert vault.tokens().find(made.text) == made.token


def test_a_restored_backup_has_no_tokens(sqlite_place: Place) -> None:
    """One of them may have been revoked since."""
    folder = sqlite_place.path.parent
    with filled(sqlite_place) as vault:
        made = vault.create_token("admin")
        vault.back_up(folder / "backup.db")
        vault.revoke_token(made.token.number)
        vault.forget(users=["ann"])
        vault.export(folder / "export.json", for_restore=True)
    for path in folder.glob(f"{sqlite_place.path.name}*"):
        if path != sqlite_place.keys and ".keys" not in path.name:
            path.unlink()
    (folder / "backup.db").rename(sqlite_place.path)
    Vault.restore(sqlite_place.url, folder / "export.json", keys=sqlite_place.keys)
    with sqlite_place.open() as vault:
        assert len(vault.tokens()) == 0
        assert vault.verify().holds


def test_tokens_go_with_a_copy(sqlite_place: Place) -> None:
    other = fresh_place("sqlite", sqlite_place.path.parent)
    with filled(sqlite_place) as vault:
        made = vault.create_token("reader")
        vault.copy_to(other.url, keys=other.keys)
    with other.open() as copy:
        assert copy.tokens().find(made.text) == made.token


def test_each_role_may_do_what_those_before_it_may() -> None:
    roles = [Role.READER, Role.OPERATOR, Role.ADMIN]
    for place, role in enumerate(roles):
        assert [role.includes(other) for other in roles] == [other <= place for other in range(3)]
    assert (
        Token(1, Role.READER, "", "2026-01-01", "2026-01-02", revoked="2026-01-01").is_accepted("2026-01-01")
        is False
    )


def test_verify_says_what_it_cannot_tell_of_the_tables_of_the_service(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        assert vault.verify().notes == ()
        vault.create_token("operator")
        (note,) = vault.verify().notes
        assert note.startswith(
            "of the service there are 1 token and 0 requests of controllers; whether others"
        )
