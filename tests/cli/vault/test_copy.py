"""The command `copy`."""

from pathlib import Path
from typing import Any

from tests.cli.examples import mode_of


def test_a_copy_is_for_its_owner_and_says_what_to_do_next(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1")
    head = run("ledger", "--head").out.strip()
    done = run("copy", "sqlite:///vault.db", "sqlite:///moved.db")
    assert (done.code, done.err) == (0, "")
    assert f"the ledger up to {head}" in " ".join(done.out.split())
    assert "Retire the old vault at vault.db" in " ".join(done.out.split())
    names = ("moved.db", "moved.db.keys", "moved.db.keys.head")
    assert {mode_of(vault / name) for name in names} == {0o600}
    assert run("verify", "--head", head, "--url", "sqlite:///moved.db").code == 0


def test_one_file_of_keys_for_both(run: Any, vault: Path) -> None:
    keys = ("--keys", "vault.db.keys")
    done = run("copy", "sqlite:///vault.db", "sqlite:///moved.db", *keys, "--new-keys", "vault.db.keys")
    assert done.code == 0, done.err
    assert not Path("moved.db.keys").exists()
    assert run("forget", "--user", "u1", "--url", "sqlite:///moved.db", *keys).code == 0
    assert "older than its pinned head" in run("decide").err


def test_refusals(run: Any, vault: Path) -> None:
    before = {path.name for path in vault.iterdir()}
    for target, message in {
        "sqlite:///vault.db": "there is already a file 'vault.db'",
        "sqlite:///clicks.csv": "there is already a file 'clicks.csv'",
        "sqlite:///no-such-folder/v.db": "No such file or directory",
        "mysql://host/x": "url must be sqlite:///FILE or postgresql://USER@HOST/DATABASE",
    }.items():
        done = run("copy", "sqlite:///vault.db", target)
        assert (done.code, len(done.err.splitlines())) == (2, 1)
        assert message in done.err
    nothing = run("copy", "sqlite:///other.db", "sqlite:///moved.db")
    assert nothing.code == 2
    assert "there is no vault at 'other.db'" in nothing.err
    assert {path.name for path in vault.iterdir()} == before
