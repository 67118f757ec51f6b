"""Values that armnesia does not write end in a sentence, not in a traceback; and `verify` finds each."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from armnesia.core.errors import ArmnesiaError, VaultError
from armnesia.vault import Configuration, Vault
from tests.databases import Place, fresh_place
from tests.vault.changed_values import CHANGES, SOURCE_CHANGES, make_vault, operations
from tests.vault.raw_vaults import LOG, change, filled

QUICK = ("opening blank", "no tree", "version of text", "identities of text", "certificates of bytes")


def run(place: Place, sql: str) -> None:
    with closing(sqlite3.connect(place.path)) as connection:
        connection.execute(sql)
        connection.commit()


def tracebacks(work: Callable[[], object]) -> str:
    """How an operation ended, if it was neither well nor with a sentence."""
    try:
        work()
    except ArmnesiaError:
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A vault with requests of every kind, and its exports."""
    folder = tmp_path_factory.mktemp("original")
    place = fresh_place("sqlite", folder)
    make_vault(place, folder)
    return place


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CHANGES]
)
@pytest.mark.filterwarnings("ignore")
def test_no_operation_ends_in_a_traceback(original: Place, tmp_path: Path, name: str) -> None:
    found = {}
    copy = tmp_path / "copy"
    place = Place(f"sqlite:///{copy}/{original.path.name}", copy / original.keys.name)
    for operation, work in operations(place, copy).items():
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(original.path.parent, copy)
        run(place, CHANGES[name])
        if problem := tracebacks(work):
            found[operation] = problem
    assert found == {}


@pytest.mark.parametrize("name", CHANGES)
def test_verify_finds_it_and_a_rebuild_hides_nothing(original: Place, tmp_path: Path, name: str) -> None:
    shutil.copytree(original.path.parent, tmp_path / "copy")
    place = Place(f"sqlite:///{tmp_path}/copy/{original.path.name}", tmp_path / "copy" / original.keys.name)
    run(place, CHANGES[name])
    with place.open(accept="any") as vault:
        assert vault.verify().problems
    try:
        with place.open(accept="damaged") as vault:
            vault.rebuild()
    except VaultError:
        return
    with place.open() as vault:
        if name.startswith("certificates"):  # which a rebuild leaves as they are
            assert any(problem.startswith("certificate") for problem in vault.verify().problems)
        else:
            assert vault.verify().problems == ()
            assert vault.certificate(users=["bob"]).verify(vault.public_keys()) == []


@pytest.mark.parametrize("name", SOURCE_CHANGES)
@pytest.mark.filterwarnings("ignore")
def test_a_changed_description_of_a_source(sqlite_place: Place, tmp_path: Path, name: str) -> None:
    log = tmp_path / "log.csv"
    log.write_text("action,reward,user,id\nA,1,ann,1\nB,0,bob,2\n", encoding="utf-8")
    with sqlite_place.create(Configuration(actions=("A", "B"), mode="external")) as vault:
        vault.ingest(log, user="user", id="id")
        vault.export(tmp_path / "restore.json", for_restore=True)
    run(sqlite_place, SOURCE_CHANGES[name])
    with sqlite_place.open() as vault:
        assert vault.verify().problems
        for work in (
            vault.status,
            lambda: vault.forget(users=["ann"]),
            lambda: vault.preview(users=["ann"]),
            vault.rebuild,
            lambda: vault.rebuild(without=["log.csv"]),
        ):
            with pytest.raises(ArmnesiaError):
                work()


def test_the_sentence_says_what_to_do_and_keeps_its_cause(place: Place) -> None:
    with filled(place) as vault:
        vault.forget(users=["ann", "bob"])
        change(vault, "UPDATE request SET opening = '   '")
        with pytest.raises(
            VaultError, match=r"values in the vault's tables were changed .* verify"
        ) as caught:
            vault.certificate(users=["ann"])
        assert isinstance(caught.value.__cause__, ValueError)


def test_an_opening_that_does_not_lead_to_the_commitment_is_not_handed_out(place: Place) -> None:
    with filled(place) as vault:
        vault.forget(users=["ann", "bob"])
        change(vault, "UPDATE request SET opening = replace(opening, 'held 0', 'held 1')")
        with pytest.raises(VaultError, match=r"values in the vault's tables were changed"):
            vault.certificate(users=["ann"])


@pytest.mark.parametrize(
    "error", [ValueError("mine"), TypeError("mine"), KeyError("mine"), IndexError("mine")]
)
def test_a_mistake_of_the_caller_is_not_taken_for_a_damaged_vault(place: Place, error: Exception) -> None:
    def progress(rows: int) -> None:
        raise error

    with filled(place) as vault:
        with pytest.raises(type(error), match="mine"):
            vault.ingest(LOG, user="who", id="id", progress=progress)
        assert vault.verify().problems == ()


def test_the_caller_of_a_damaged_vault_reads_what_is_wrong(place: Place) -> None:
    with filled(place) as vault:
        change(vault, "UPDATE record SET arm = 77")
        with pytest.raises(VaultError, match=r"values in the vault's tables were changed"):
            vault.preview(users=["ann"])
        assert Vault.verify(vault).problems
