"""A backup that is put back: brought in line with the journal, so that nobody comes back with it."""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import ArmnesiaError, VaultError
from armnesia.vault import Configuration, UserType, Vault
from tests.databases import Place
from tests.vault.raw_vaults import LOG, Snapshot, arms, change, dumped, filled, journal_of, values

LATER: dict[str, list[Any]] = {
    "action": ["B", "A"],
    "reward": [0.5, 0.5],
    "who": ["ann", "eve"],
    "id": ["r7", "r8"],
}


def restored(place: Place, **options: Any) -> int:
    return Vault.restore(place.url, keys=place.keys, **options).replayed


def held(vault: Vault) -> list[str]:
    """The ids of the rows that a vault holds."""
    names = {vault.all_keys.record_identities("id", [name])[0]: name for name in LOG["id"] + LATER["id"]}
    return sorted(names[identity] for (identity,) in values(vault, "SELECT identity FROM record"))


def write_csv(path: Path, log: dict[str, list[Any]] = LOG) -> str:
    rows = zip(*log.values(), strict=True)
    path.write_text("\n".join([",".join(log), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return str(path)


@pytest.mark.parametrize("key", ["{}", '["x","y"]'])
def test_a_key_that_is_none_is_refused_in_a_sentence(sqlite_place: Place, key: str) -> None:
    with sqlite_place.create(Configuration(actions=("A", "B"), by=("page",))) as vault:
        vault.ingest({"action": ["A"], "reward": [1], "who": ["ann"], "page": ["x"]}, user="who")
        change(vault, "UPDATE decision SET key = ?", key)
        for read in (vault.decisions, vault.status):
            with suppress(VaultError):  # as far as it reads decisions
                read()
    with pytest.raises(VaultError, match="keys that armnesia does not write"):
        restored(sqlite_place, as_it_is=True)


def test_everything_after_the_backup_is_done_again(place: Place, tmp_path: Path) -> None:
    vault = filled(place)
    vault.forget(users=["bob"])
    vault.readmit(users=["bob"])
    vault.create_token("reader")
    backup = Snapshot(place, vault, tmp_path)
    vault.forget(users=["ann"], case="DSR-1", by="clerk")
    vault.forget(records=["r2"])
    vault.forget(users=["nobody"])
    vault.change_policy(max_epsilon=1.0, max_delta=1e-5, levels=("retained",), beyond="rollback")
    vault.readmit(users=["ann"])
    vault.ingest(LATER, user="who", id="id")
    vault.add_arm("C")
    vault.rotate_signing_key()
    vault.revoke_token(1)
    vault.forget(users=["cem", "eve"])
    before, configuration = dumped(vault), vault.configuration
    names = ("ann", "cem", "eve", "nobody", "bob")
    certificates = {name: vault.certificate(users=[name]) for name in names}
    vault.close()
    backup.put_back()

    done = Vault.restore(place.url, keys=place.keys)
    assert (done.replayed, done.as_it_was, done.recounted) == (9, True, False)
    assert done.rows_deleted == 3  # two of ann, one of cem
    with place.open() as vault:
        assert vault.verify().problems == ()
        assert held(vault) == ["r5", "r6"]  # neither the forgotten, nor what came in after the backup
        assert vault.configuration == configuration
        after = dumped(vault)
        for table in ("suppressed", "people"):
            assert after[table] == before[table]
        assert set(before["entry"]) < set(after["entry"])
        assert [entry.kind for entry in vault.ledger().entries][-2:] == ["forget", "restored"]
        assert [token.revoked is None for token in vault.tokens()] == [False]
        # Also of entries that the backup did not have there are certificates, and old ones stay valid.
        for name, certificate in certificates.items():
            again = vault.certificate(users=[name])
            assert again.entry == certificate.entry
            assert again.openings == certificate.openings
            for each in (again, certificate):
                assert each.verify(vault.public_keys().keys) == []
        assert vault.entries_of_case("DSR-1") == [4]
        # ann was readmitted, cem and eve were not.
        later = vault.ingest(LATER, user="who", id="id")
        assert (later.added, later.suppressed) == (1, 1)
        assert vault.ingest(LOG, user="who", id="id").suppressed == 2  # r2 and cem
        assert vault.forget(users=["cem"]).repeated


def test_a_restored_vault_serves_what_the_learner_decides(place: Place, tmp_path: Path) -> None:
    log = {"action": ["A", "A", "B"] * 40, "reward": [1.0, 1.0, 0.5] * 40, "who": ["ann", "ann", "bob"] * 40}
    with place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest(log, user="who")
        backup = Snapshot(place, vault, tmp_path)
        assert (vault.decide().action, vault.forget(users=["ann"]).served) == ("A", "B")
    backup.put_back()
    restored(place)
    with place.open() as vault:
        assert (vault.decide().action, vault.decide().by) == ("B", "learner")
        assert [count for count, *_ in arms(vault)] == [0, 40]


def test_many_decisions_are_those_of_the_backup_without_the_forgotten(place: Place, tmp_path: Path) -> None:
    """A decision that nobody left serves what it served; another decides again; a new one is gone."""
    log = {
        "action": ["A", "A", "B", "A", "B", "B"],
        "reward": [1.0, 1.0, 0.9, 1.0, 0.2, 0.1],
        "who": ["ann", "ann", "bob", "cem", "cem", "dan"],
        "page": ["home", "home", "home", "shop", "shop", "shop"],
    }
    configuration = Configuration(actions=("A", "B"), by=("page",), user_type=UserType.TEXT, confidence=0.5)
    with place.create(configuration) as vault:
        vault.ingest(log, user="who")
        backup = Snapshot(place, vault, tmp_path)
        vault.ingest({**log, "page": ["new"] * 6, "who": ["eve"] * 6}, user="who")
        shop = vault.decide(where={"page": "shop"})
        vault.forget(users=["ann"])
    backup.put_back()
    assert restored(place) == 1
    with place.open() as vault:
        assert vault.verify().problems == ()
        assert [key["page"] for key in vault.decisions().keys] == ["home", "shop"]
        assert vault.decide(where={"page": "home"}).action == "B"
        again = vault.decide(where={"page": "shop"})
        assert (again.action, again.by) == (shop.action, shop.by)


def test_a_backup_from_before_the_first_batch_knows_the_actions_after_it(
    place: Place, tmp_path: Path
) -> None:
    with place.create(Configuration(actions=None)) as vault:
        backup = Snapshot(place, vault, tmp_path)
        vault.ingest(LOG, user="who", id="id")
        vault.forget(users=["ann"])
    backup.put_back()
    assert restored(place) == 2
    with place.open() as vault:
        assert (vault.decide().action, vault.decide().by) == ("A", "default")
        assert vault.configuration.user_type == "text"
        assert vault.ingest(LOG, user="who", id="id").added == 4
        assert vault.verify().problems == ()


@pytest.mark.parametrize("mode", ["managed", "external"])
def test_the_counts_of_a_frozen_penalty_are_what_the_ledger_tells(
    place: Place, tmp_path: Path, mode: str
) -> None:
    """Also of rows that came in after the backup and were forgotten after it."""
    first, later = write_csv(tmp_path / "first.csv"), write_csv(tmp_path / "later.csv", LATER)
    with place.create(Configuration(actions=("A", "B"), mode=mode, penalty="frozen")) as vault:
        vault.ingest(first, user="who", id="id")
        vault.forget(users=["bob"])
        backup = Snapshot(place, vault, tmp_path)
        vault.ingest(later, user="who", id="id")
        vault.forget(users=["ann", "eve"])
        statistics = arms(vault)
        assert [gone for *_, gone in statistics] == [3, 2]
    backup.put_back()
    assert restored(place) == 1
    with place.open() as vault:
        vault.ingest(later, user="who", id="id")
        assert arms(vault) == statistics
        assert vault.verify().problems == ()


def test_corrections_that_are_lost_are_counted(place: Place, tmp_path: Path) -> None:
    with filled(place) as vault:
        backup = Snapshot(place, vault, tmp_path)
        vault.ingest({**LOG, "reward": [0.0] * 6}, user="who", id="id", replace=True)
    backup.put_back()
    done = Vault.restore(place.url, keys=place.keys)
    assert (done.replayed, done.corrections_lost) == (1, 5)
    with place.open() as vault:
        assert vault.ingest({**LOG, "reward": [0.0] * 6}, user="who", id="id", replace=True).replaced == 5
        assert vault.verify().problems == ()


def test_restoring_what_is_not_old_changes_nothing_but_the_ledger(place: Place) -> None:
    with filled(place) as vault:
        vault.forget(users=["ann"])
        before = dumped(vault)
        assert restored(place) == 0
        after = dumped(vault)
        assert {name for name in after if after[name] != before[name]} == {"vault", "entry"}
        assert vault.verify().problems == ()


def test_a_damaged_backup_is_accepted_as_it_is_only(place: Place, tmp_path: Path) -> None:
    with filled(place) as vault:
        change(vault, "UPDATE record SET arm = 1 - arm")
        backup = Snapshot(place, vault, tmp_path)
        vault.forget(users=["ann"])
        journal = journal_of(place).read_bytes()
    backup.put_back()
    with pytest.raises(VaultError, match="accept it with --as-it-is, which the ledger records"):
        restored(place)
    assert journal_of(place).read_bytes() == journal
    done = Vault.restore(place.url, keys=place.keys, as_it_is=True)
    assert (done.replayed, done.as_it_was) == (1, False)
    with place.open() as vault:
        assert vault.ledger().entries[-1].facts["as_it_was"] is False
        assert vault.verify().problems == ()
        assert held(vault) == ["r2", "r4", "r5", "r6"]
        assert [count for count, *_ in arms(vault)] == [2, 2]


def test_a_longer_copy_of_the_journal_takes_its_place(place: Place, tmp_path: Path) -> None:
    """The journal beside the keys came from a backup, too."""
    with filled(place) as vault:
        backup, old = Snapshot(place, vault, tmp_path), journal_of(place).read_bytes()
        vault.forget(users=["ann"])
    shutil.copy(journal_of(place), tmp_path / "copy.journal")
    backup.put_back()
    journal_of(place).write_bytes(old)
    place.open().close()  # nothing here could tell
    assert restored(place, journal=tmp_path / "copy.journal") == 1
    with place.open() as vault:
        assert vault.forget(users=["ann"]).repeated
        assert [line.size for line in vault.journal.lines()][-2:] == [2, 3]
        assert vault.verify().problems == ()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:40]), "has no complete line"),
        (lambda path: path.write_text("[]\n"), "is no journal, or has been changed"),
        (
            lambda path: path.write_bytes(path.read_bytes().replace(b'"user"', b'"usex"')),
            "a line of a journal must have",
        ),
        (lambda path: path.write_bytes(path.read_bytes().partition(b"\n")[2]), "does not follow"),
        (lambda path: path.chmod(0o644), "is accessible to other users"),
        (lambda path: path.unlink(), "is missing"),
    ],
)
def test_a_bad_journal_is_refused_and_nothing_is_written(
    sqlite_place: Place, tmp_path: Path, spoil: Any, said: str
) -> None:
    with filled(sqlite_place) as vault:
        backup = Snapshot(sqlite_place, vault, tmp_path)
        vault.forget(users=["ann"])
    backup.put_back()
    before = sqlite_place.path.read_bytes()
    spoil(journal_of(sqlite_place))
    with pytest.raises(ArmnesiaError, match=said):
        restored(sqlite_place)
    assert sqlite_place.path.read_bytes() == before
