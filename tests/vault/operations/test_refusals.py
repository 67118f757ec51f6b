"""What is refused, each in one sentence and with nothing written; and what is left after a failure."""

import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import ArmnesiaError, InvalidInputError, VaultError
from armnesia.vault import Configuration, UserType, Vault
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.operations import ingest
from armnesia.vault.state.decision_table import put_decisions, read_decisions
from armnesia.vault.state.decisions import ArmSums, stacked
from tests.databases import Place, fresh_place, postgres_url
from tests.vault.raw_vaults import COLUMNS, LOG, change, dumped, filled, values


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_people_are_not_taken_for_actions_or_rewards(place: Place) -> None:
    """Actions of a first batch stand in the ledger for good; what is no number is quoted."""
    with place.create() as vault:
        before = dumped(vault)
        for mistaken in ("action", "reward"):
            columns: Any = {"user": "who", "id": "id", mistaken: "who"}
            with pytest.raises(InvalidInputError, match="another column than action and reward; got 'who'"):
                vault.ingest(LOG, **columns)
        assert dumped(vault) == before


@pytest.mark.parametrize("database_is_made", [False, True])
def test_an_interrupted_init_says_what_to_remove(sqlite_place: Place, database_is_made: bool) -> None:
    """Killed between writing the keys and the first commit."""
    Keyring.create("v-1").save(sqlite_place.keys)
    database = sqlite_place.path
    if database_is_made:
        database.touch()
    with pytest.raises(VaultError, match="if an init was interrupt"):
        sqlite_place.create()
    sqlite_place.keys.unlink()
    database.unlink(missing_ok=True)
    sqlite_place.create().close()
    with pytest.raises(VaultError, match="a new file with --keys"):
        Vault.create(f"{sqlite_place.url}.other", keys=sqlite_place.keys)
    assert not Path(f"{database}.other").exists()


# What is no vault, and keys that are not its.


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "v.db").write_text("dear diary" * 1000)
    before = contents(tmp_path)
    with pytest.raises(VaultError, match="is not a vault, or is damaged"):
        Vault.open(f"sqlite:///{tmp_path}/v.db")
    with pytest.raises(VaultError, match="there is already a file"):
        Vault.create(f"sqlite:///{tmp_path}/v.db")
    assert contents(tmp_path) == before


def test_a_database_that_is_no_vault_is_refused_and_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "v.db")) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
    before = contents(tmp_path)
    with pytest.raises(VaultError, match=r"there is no vault at .*; make one with: armnesia init"):
        Vault.open(f"sqlite:///{tmp_path}/v.db")
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("mysql://host/base", "url must be sqlite:///FILE or postgresql://"),
        ("sqlite://v.db", "url must be sqlite:///FILE"),
        ("sqlite:////no/such/file.db", "there is no vault at"),
        ("sqlite:////tmp", "there is no vault at"),
        ("postgresql://localhost:1/base", "cannot be reached; nothing was changed"),
        ("postgresql://host/base?schema=Robert'); DROP", "schema must consist of lower-case letters"),
        ("postgresql://ann:s3c/ret@host/base", "url must be postgresql://USER@HOST/DATABASE; in a password"),
        ("postgresql://ann:s3c@ret@host/base", "url must be postgresql://USER@HOST/DATABASE; in a password"),
        ("postgresql://ann:s3cret@[host/base", "url must be postgresql://USER@HOST/DATABASE; in a password"),
    ],
)
def test_an_address_that_leads_nowhere(address: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ArmnesiaError, match=said) as told:
        Vault.open(address, keys=tmp_path / "keys", timeout=2.0)
    assert "s3c" not in str(told.value)


def test_a_schema_and_a_database_that_are_not_there(postgres_place: Place) -> None:
    with pytest.raises(VaultError, match="there is no vault at"):
        postgres_place.open()
    address = postgres_url()
    base, mark, options = address.partition("?")
    missing = f"{base.rpartition('/')[0]}/no_such_database{mark}{options}"
    with pytest.raises(VaultError, match="cannot be reached; nothing was changed"):
        Vault.open(missing, keys=postgres_place.keys)


def test_a_second_vault_at_the_same_place_is_refused(place: Place, tmp_path: Path) -> None:
    with filled(place) as vault:
        before, files = dumped(vault), contents(tmp_path)
        message = "there are keys at .* already: a vault is created once"
        with pytest.raises(VaultError, match=message):
            place.create()
        with pytest.raises(VaultError, match=r"there is already a (vault|file)"):
            Vault.create(place.url, keys=tmp_path / "other.keys")
        assert dumped(vault) == before
        assert contents(tmp_path).keys() == files.keys()


def test_keys_of_another_vault_are_refused(place: Place, tmp_path: Path) -> None:
    filled(place).close()
    other = fresh_place("sqlite", tmp_path)
    filled(other).close()
    with pytest.raises(VaultError, match="the keys belong to another vault"):
        Vault.open(place.url, keys=other.keys).decide()


def test_lost_open_and_damaged_keys(place: Place, tmp_path: Path) -> None:
    filled(place).close()
    kept = place.keys.read_bytes()
    place.keys.chmod(0o644)
    with pytest.raises(VaultError, match="is accessible to other users"):
        place.open()
    place.keys.chmod(0o600)
    place.keys.write_bytes(kept[:-10])
    with pytest.raises(VaultError, match="is not a valid key file"):
        place.open()
    place.keys.unlink()
    with pytest.raises(
        VaultError,
        match=r"\.keys does not exist: it has the vault's keys; give the file with --keys, or copy it",
    ):
        place.open()


def test_totals_beyond_64_bits_are_stored_exactly(place: Place) -> None:
    sums = ArmSums((2 * 10**10, 1), (2**64 + 1, 5))
    with filled(place) as vault, vault.writing() as transaction:
        (decision,) = read_decisions(transaction)
        changed = [replace(decision, statistics=sums)]
        put_decisions(transaction, changed)
    with place.open() as vault, vault.reading() as transaction:
        decisions = read_decisions(transaction)
        assert decisions == changed
        stream = stacked(decisions, transaction.state.configuration)
        assert stream.statistics.sums.tolist() == [[2**64 + 1, 5]]


# Failures on the way.


def bigger_log(rows: int, **others: Any) -> dict[str, list[Any]]:
    numbers = range(rows)
    columns: dict[str, list[Any]] = {"action": ["A"] * rows, "reward": [0.5] * rows}
    columns |= {"who": [f"user-{n}" for n in numbers], "id": [f"row-{n}" for n in numbers]}
    return columns | others


def test_an_interrupted_ingest_leaves_nothing(place: Place) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with filled(place) as vault:
        before = dumped(vault)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                vault.ingest(bigger_log(100), user="who", id="id", progress=interrupt)
        assert dumped(vault) == before
        assert vault.ingest(bigger_log(100), user="who", id="id").added == 100


def test_two_first_sources_with_different_actions(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = ingest._checked
    with place.create(Configuration(actions=None)) as vault, place.open() as faster:

        def overtaken(*arguments: Any) -> Any:
            found = declared(*arguments)
            monkeypatch.setattr(ingest, "_checked", declared)
            faster.ingest({"action": ["X", "Y"], "reward": [0, 1], "id": ["1", "2"]}, id="id", no_user=True)
            return found

        monkeypatch.setattr(ingest, "_checked", overtaken)
        with pytest.raises(
            VaultError, match="the configuration of the vault was changed meanwhile; ingest again"
        ):
            vault.ingest(LOG, user="who", id="id")
        assert vault.configuration.actions == ("X", "Y")
        assert vault.verify().holds


def test_the_ledger_says_which_actions_the_first_source_fixed(place: Place) -> None:
    with place.create(Configuration(actions=None)) as vault:
        vault.ingest(LOG, user="who", id="id")
        vault.ingest(LOG, user="who", id="id")
        assert [entry.kind for entry in vault.ledger().entries] == ["init", "configured"]
        fixed = vault.ledger().entries[1].facts["configuration"]
        assert (fixed["actions"], fixed["user_type"], fixed["columns"]) == (["A", "B"], "text", COLUMNS)
        assert vault.verify(vault.checkpoint()).holds
        ((told,),) = values(vault, "SELECT configuration FROM vault")
        change(vault, "UPDATE vault SET configuration = replace(configuration, 'A', 'C')")
        assert '"C"' in values(vault, "SELECT configuration FROM vault")[0][0] != told
        assert not Vault.restore(
            place.url, keys=place.keys, as_it_is=True
        ).as_it_was  # by what the ledger tells
        assert values(vault, "SELECT configuration FROM vault") == [(told,)]
        assert vault.verify().holds


@pytest.mark.filterwarnings("ignore:user column 'who' has white space")
def test_ids_of_any_letters(place: Place) -> None:
    names = ["a\0b", "é" * 3000, "'; DROP TABLE record; --", "%s ? $1", " ", "\N{PILE OF POO}"]
    with filled(place, Configuration(actions=("A", "B"), user_type=UserType.TEXT)) as vault:
        log = bigger_log(len(names), who=names, id=[name + "!" for name in names])
        assert vault.ingest(log, user="who", id="id").added == len(names)
        for name in names[:3]:
            assert vault.forget(users=[name]).records == 1
        ids = [name + "!" for name in names]  # of the first, nothing is held any more
        assert vault.forget(records=ids, exactly=True).records == len(names) - 3
        assert vault.ingest(log, user="who", id="id").suppressed == len(names)
        assert vault.verify().holds


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """No file of this process may grow beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_forget_on_a_full_disk_is_done_or_not_done(sqlite_place: Place) -> None:
    """However much room is left: refused as a whole, or done as a whole."""
    seen = set()
    with filled(sqlite_place) as vault:
        vault.ingest(bigger_log(2_000), user="who", id="id")
        for number, room in enumerate([0, 1, 2, 4, 8, 12, 16, 20, 24, 32, 48, 64, 10_000]):
            vault.database.compact()
            before, user = dumped(vault), f"user-{number}"
            with files_up_to(4096 * room):
                try:
                    outcome = str(vault.forget(users=[user]).records)
                except VaultError:
                    outcome = "refused"
            seen.add(outcome)
            assert vault.verify().holds
            assert (dumped(vault) == before) == (outcome == "refused")
            assert vault.forget(users=[user]).repeated == (outcome != "refused")
    assert seen == {"refused", "1"}
