"""A backup that is put back: refused by the pinned head, and brought up to date before it opens."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import ArmnesiaError, MissingExtraError, VaultError
from armnesia.vault import Configuration, Vault
from armnesia.vault.state import counted_sources
from tests.databases import Place
from tests.vault.raw_vaults import LOG, Snapshot, arms, dumped, filled, raising, values

LATER: dict[str, list[Any]] = {
    "action": ["B", "A"],
    "reward": [0.5, 0.5],
    "who": ["ann", "eve"],
    "id": ["r7", "r8"],
}


def restored(place: Place, export: Path) -> int:
    return Vault.restore(place.url, export, keys=place.keys).replayed


def held(vault: Vault) -> list[str]:
    """The ids of the rows that a vault holds."""
    ring = vault._connection.all_keys
    names = {ring.record_identity("id", name): name for name in LOG["id"] + LATER["id"]}
    return sorted(names[identity] for (identity,) in values(vault, "SELECT identity FROM record"))


def history(vault: Vault) -> None:
    """What happens after the backup: all that a restore has to do again."""
    vault.forget(users=["ann"])
    vault.forget(records=["r2"])
    vault.forget(users=["nobody"])
    vault.change_policy(max_epsilon=1.0, max_delta=1e-5, levels=("retained",), beyond="rollback")
    vault.readmit(users=["ann"])
    vault.ingest(LATER, user="who", id="id")
    vault.rotate_digest_key()
    vault.rotate_signing_key()
    vault.forget(users=["cem", "eve"])
    vault.rotate_digest_key()


def test_everything_after_the_backup_is_done_again(place: Place, tmp_path: Path) -> None:
    vault = filled(place)
    vault.forget(users=["bob"])
    vault.readmit(users=["bob"])
    backup = Snapshot(place, vault, tmp_path)
    history(vault)
    vault.export(tmp_path / "export.json", for_restore=True)
    before, policy = dumped(vault), vault.configuration.policy
    certificates = [vault.certificate(users=[name]) for name in ("ann", "cem", "eve", "nobody", "bob")]
    vault.close()
    backup.put_back()

    with pytest.raises(VaultError, match=r"older than its pinned head .* run armnesia restore"):
        place.open()
    assert restored(place, tmp_path / "export.json") == 9  # one entry for each line of the history but one

    with place.open() as vault:
        assert vault.verify().holds
        assert held(vault) == ["r5", "r6"]  # neither the forgotten, nor what came in after the backup
        assert vault.configuration.policy == policy
        after = dumped(vault)
        for table in ("suppressed", "request"):
            assert after[table] == before[table]
        # The bytes came back with the backup: those who were forgotten after it have to wait once more.
        states = dict(values(vault, "SELECT sequence, body FROM certificate"))
        assert states.keys() == {sequence for sequence, *_ in before["certificate"]}
        assert {n for n, body in states.items() if '"state":"complete"' in body} <= {1, 2, 3}
        assert [entry.kind for entry in vault.ledger()][-2:] == ["rotate_digest", "restore"]
        for certificate in certificates:
            request = certificate.opening["request"]  # type: ignore[index]
            assert vault.certificate(users=request["users"]).body["entry"] == certificate.body["entry"]
            assert certificate.verify(vault.public_keys()) == []
        # ann was readmitted, cem and eve were not.
        again = vault.ingest(LATER, user="who", id="id")
        assert (again.added, again.suppressed) == (1, 1)
        assert vault.ingest(LOG, user="who", id="id").suppressed == 2  # r2 and cem
        assert vault.forget(users=["cem"]).repeated


def test_a_restored_vault_serves_what_the_learner_decides(place: Place, tmp_path: Path) -> None:
    log = {"action": ["A", "A", "B"] * 40, "reward": [1.0, 1.0, 0.5] * 40, "who": ["ann", "ann", "bob"] * 40}
    vault = place.create(Configuration(actions=("A", "B")))
    vault.ingest(log, user="who")
    backup = Snapshot(place, vault, tmp_path)
    assert (vault.decide().action, vault.forget(users=["ann"]).served) == ("A", "B")
    vault.export(tmp_path / "export.json", for_restore=True)
    vault.close()
    backup.put_back()
    restored(place, tmp_path / "export.json")
    with place.open() as vault:
        assert (vault.decide().action, vault.decide().by) == ("B", "learner")
        assert [count for count, *_ in arms(vault)] == [0, 40]


def test_bytes_that_came_back_with_a_backup_are_erased_again(place: Place, tmp_path: Path) -> None:
    def erasure() -> str:
        with place.open() as vault:
            return str(vault.certificate(users=["ann"]).body["erasure"]["state"])

    vault = filled(place)
    backup = Snapshot(place, vault, tmp_path)
    vault.forget(users=["ann"])
    vault.forget(users=["nobody"])
    vault.compact()
    assert erasure() == "complete"
    vault.export(tmp_path / "export.json", for_restore=True)
    vault.close()
    backup.put_back()
    restored(place, tmp_path / "export.json")
    assert erasure() == ("complete" if "sqlite" in place.url else "pending")  # SQLite erases at once
    with place.open() as vault:
        assert vault.compact().complete
        assert vault.certificate(users=["nobody"]).body["erasure"]["state"] == "complete"
        assert vault.verify().holds
    assert erasure() == "complete"


def test_a_backup_from_before_the_first_batch_knows_the_actions_after_it(
    place: Place, tmp_path: Path
) -> None:
    vault = place.create(Configuration(actions=None))
    backup = Snapshot(place, vault, tmp_path)
    vault.ingest(LOG, user="who", id="id")
    vault.forget(users=["ann"])
    vault.export(tmp_path / "export.json", for_restore=True)
    vault.close()
    backup.put_back()
    assert restored(place, tmp_path / "export.json") == 3
    with place.open() as vault:
        assert (vault.decide().action, vault.decide().by) == ("A", "default")
        assert vault.configuration.user_type == "text"
        assert vault.ingest(LOG, user="who", id="id").added == 4
        assert vault.verify().holds


def test_an_external_vault_is_read_from_its_sources_again(place: Place, tmp_path: Path) -> None:
    source = tmp_path / "log.csv"
    rows = zip(*LOG.values(), strict=True)
    source.write_text("\n".join([",".join(LOG), *(",".join(map(str, row)) for row in rows)]) + "\n")
    vault = place.create(Configuration(actions=("A", "B"), mode="external"))
    vault.ingest(str(source), user="who", id="id")
    backup = Snapshot(place, vault, tmp_path)
    vault.forget(users=["ann"])
    statistics = arms(vault)
    vault.export(tmp_path / "export.json", for_restore=True)
    vault.close()
    backup.put_back()
    assert restored(place, tmp_path / "export.json") == 1
    with place.open() as vault:
        assert arms(vault) == statistics
        assert vault.verify().problems == ()
        assert vault.forget(users=["ann"]).repeated


@pytest.mark.parametrize("mode", ["managed", "external"])
def test_what_is_gone_by_a_frozen_penalty_is_what_the_ledger_tells(
    place: Place, tmp_path: Path, mode: str
) -> None:
    """Also of rows that came in after the backup and were forgotten after it."""
    files = []
    for name, log in (("first", LOG), ("later", LATER)):
        rows = zip(*log.values(), strict=True)
        files.append(tmp_path / f"{name}.csv")
        files[-1].write_text("\n".join([",".join(log), *(",".join(map(str, row)) for row in rows)]) + "\n")
    vault = place.create(Configuration(actions=("A", "B"), mode=mode, penalty="frozen"))
    vault.ingest(str(files[0]), user="who", id="id")
    vault.forget(users=["bob"])
    backup = Snapshot(place, vault, tmp_path)
    vault.ingest(str(files[1]), user="who", id="id")
    vault.forget(users=["ann", "eve"])
    statistics = arms(vault)
    assert [gone for *_, gone in statistics] == [3, 2]
    vault.export(tmp_path / "export.json", for_restore=True)
    vault.close()
    backup.put_back()
    assert restored(place, tmp_path / "export.json") == 1
    with place.open() as vault:
        vault.ingest(str(files[1]), user="who", id="id")
        assert arms(vault) == statistics
        assert vault.verify().problems == ()


def test_restoring_what_is_not_old_changes_nothing_but_the_ledger(place: Place, tmp_path: Path) -> None:
    vault = filled(place)
    vault.forget(users=["ann"])
    vault.export(tmp_path / "export.json", for_restore=True)
    before = dumped(vault)
    vault.close()
    assert restored(place, tmp_path / "export.json") == 0
    with place.open() as vault:
        after = dumped(vault)
        assert {name for name in after if after[name] != before[name]} == {"vault", "ledger"}
        assert vault.verify().holds


def _edited(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def edit(path: Path) -> None:
        document = json.loads(path.read_text())
        change(document)
        path.write_text(json.dumps(document))

    return edit


BAD: Mapping[str, tuple[Callable[[Path], object], str]] = {
    "cut off": (
        lambda path: path.write_text(path.read_text()[:-20]),
        "must be valid JSON; it is invalid or truncated",
    ),
    "another file": (lambda path: path.write_text("[]"), "is not an export of a vault"),
    "for an auditor": (_edited(lambda it: it.pop("suppressed")), "an auditor's export"),
    "somebody taken off the list": (
        _edited(lambda it: it["suppressed"].pop()),
        "was changed after it was exported",
    ),
    "a weaker policy": (
        _edited(lambda it: it["configuration"]["policy"].update(max_epsilon=9.0)),
        "was changed after it was exported",
    ),
    "without a seal": (_edited(lambda it: it.pop("seal")), "was changed after it was exported"),
    "a key that is none": (_edited(lambda it: it.update(digest_key="1")), "keyring has digest keys 1 to 1"),
    "another vault's": (_edited(lambda it: it.update(vault="another")), "is the export of another vault"),
    "open to others": (lambda path: path.chmod(0o644), "is accessible to other users"),
    "lost": (lambda path: path.unlink(), "cannot be read"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_export_is_refused_and_nothing_is_written(place: Place, tmp_path: Path, what: str) -> None:
    vault = filled(place)
    backup = Snapshot(place, vault, tmp_path)
    vault.forget(users=["ann"])
    export = tmp_path / "export.json"
    vault.export(export, for_restore=True)
    vault.close()
    backup.put_back()
    spoil, said = BAD[what]
    spoil(export)
    pin = place.keys.with_name(place.keys.name + ".head")
    pinned = pin.read_bytes()
    with pytest.raises(ArmnesiaError, match=said):
        restored(place, export)
    assert pin.read_bytes() == pinned
    pin.unlink()
    with place.open() as vault:
        assert held(vault) == LOG["id"]  # as the backup was
        assert vault.head.sequence == 1


def test_an_export_that_is_older_than_the_pinned_head_is_refused(place: Place, tmp_path: Path) -> None:
    vault = filled(place)
    backup = Snapshot(place, vault, tmp_path)
    vault.forget(users=["ann"])
    vault.export(tmp_path / "export.json", for_restore=True)
    vault.forget(users=["bob"])
    vault.close()
    backup.put_back()
    with pytest.raises(VaultError, match=r"ends at entry 2 .* pinned head, entry 3: give a newer export"):
        restored(place, tmp_path / "export.json")


def test_a_vault_that_went_on_from_the_backup_is_refused(place: Place, tmp_path: Path) -> None:
    vault = filled(place)
    backup = Snapshot(place, vault, tmp_path)
    vault.forget(users=["ann"])
    vault.export(tmp_path / "export.json", for_restore=True)
    vault.close()
    backup.put_back()
    pin = place.keys.with_name(place.keys.name + ".head")
    pin.unlink()
    with place.open() as vault:
        vault.forget(users=["bob"])
    pin.unlink()
    with pytest.raises(VaultError, match="is not the beginning of the export's: they have diverged"):
        restored(place, tmp_path / "export.json")


def two_sources(place: Place, folder: Path) -> tuple[Vault, list[str], Snapshot]:
    """An external vault with two folders of files, their names, and a backup."""
    rows = {"a": ["A,1,ann", "B,0,bob", "A,0,cem"], "b": ["A,1,dan", "B,1,eve", "A,0,ann"]}
    vault = place.create(Configuration(actions=("A", "B"), mode="external"))
    for name, own in rows.items():
        (folder / name).mkdir()
        (folder / name / "log.csv").write_text("\n".join(["action,reward,user", *own]) + "\n")
        vault.ingest(str(folder / name), user="user")
    return vault, [each.name for each in vault.status().sources], Snapshot(place, vault, folder)


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_source_that_was_dropped_since_stays_dropped(place: Place, tmp_path: Path, is_gone: bool) -> None:
    vault, (first, second), backup = two_sources(place, tmp_path)
    vault.rebuild(without=[first])
    if is_gone:
        shutil.rmtree(tmp_path / "a")
    vault.forget(users=["ann"])
    statistics = arms(vault)
    vault.export(tmp_path / "export.json", for_restore=True)
    vault.close()
    backup.put_back()
    assert restored(place, tmp_path / "export.json") == 2
    with place.open() as vault:
        assert [each.name for each in vault.status().sources] == [second]
        assert arms(vault) == statistics
        assert vault.verify().holds


@pytest.mark.parametrize("told", [True, False], ids=["moved before the restore", "gone with the machine"])
def test_a_source_that_was_moved_since_is_named_with_its_place(
    sqlite_place: Place, tmp_path: Path, told: bool
) -> None:
    place, export = sqlite_place, tmp_path / "export.json"
    vault, (first, second), backup = two_sources(place, tmp_path)
    if told:
        (tmp_path / "a").rename(tmp_path / "now")
        vault.rebuild(moved=(first, str(tmp_path / "now")))
    vault.forget(users=["ann"])
    statistics = arms(vault)
    vault.export(export, for_restore=True)
    vault.close()
    backup.put_back()
    if not told:
        (tmp_path / "a").rename(tmp_path / "now")
    with pytest.raises(VaultError, match="armnesia restore EXPORT --moved OLD NEW"):
        restored(place, export)
    with pytest.raises(ArmnesiaError, match="has no source 'elsewhere'"):
        Vault.restore(place.url, export, keys=place.keys, moved=[("elsewhere", str(tmp_path / "now"))])
    with pytest.raises(VaultError, match="older than its pinned head"):
        place.open()
    Vault.restore(place.url, export, keys=place.keys, moved=[(first, str(tmp_path / "now"))])
    with place.open() as vault:
        names = [each.name for each in vault.status().sources]
        assert names == [str(tmp_path / "now"), second]
        assert arms(vault) == statistics
        assert vault.verify().holds
        assert vault.forget(users=["bob"]).records == 1
        *_, entry, _ = vault.ledger()
        assert entry.fields["moved"] == [1]


def test_a_source_that_needs_an_extra_is_not_called_moved(
    sqlite_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, export = sqlite_place, tmp_path / "export.json"
    vault, _, backup = two_sources(place, tmp_path)
    vault.forget(users=["ann"])
    vault.export(export, for_restore=True)
    vault.close()
    backup.put_back()
    missing = MissingExtraError.naming("Reading such logs", "lakes")
    with monkeypatch.context() as patch:
        patch.setattr(counted_sources, "reopen", raising(missing))
        with pytest.raises(VaultError, match="Reading such logs") as raised:
            restored(place, export)
    assert "--moved" not in str(raised.value)
    assert str(raised.value).count("nothing was changed") == 1
    assert restored(place, export) == 1
