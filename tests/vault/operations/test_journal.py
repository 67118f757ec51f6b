"""The journal of a vault: complete after any crash, ahead of no other ledger, and asked before anything."""

import json
import shutil
from pathlib import Path

import pytest

from armnesia.core.errors import ArmnesiaError, UnfinishedError, VaultError
from armnesia.vault import Configuration, UserType, Vault
from armnesia.vault.ledger.journal import Journal
from tests.databases import Place, fresh_place
from tests.vault.raw_vaults import LOG, Snapshot, copy_to, dumped, filled, journal_of, raising


def test_every_commit_adds_a_line_and_nothing_else_does(place: Place) -> None:
    with filled(place) as vault:
        lines = len(list(vault.journal.lines()))
        for change in (
            lambda: vault.ingest({**LOG, "id": [f"x{name}" for name in LOG["id"]]}, user="who", id="id"),
            lambda: vault.forget(users=["ann"]),
            lambda: vault.forget_many([]),
            lambda: vault.readmit(users=["ann"]),
            lambda: vault.change_policy(max_epsilon=1.0),
            lambda: vault.add_arm("C"),
            vault.rotate_signing_key,
            lambda: vault.create_token("reader"),
            lambda: vault.revoke_token(1),
            vault.compact,
        ):
            before = dumped(vault)
            change()
            lines += before != dumped(vault)
            assert len(list(vault.journal.lines())) == lines
        for look in (vault.status, vault.verify, vault.decide, vault.ledger, vault.checkpoint):
            look()
        vault.preview(users=["bob"])
        assert vault.forget(users=["ann"], exactly=True).entry
        assert len(list(vault.journal.lines())) == lines + 1
        last = vault.journal.last()
        assert (last.size, last.root) == (vault.head.size, vault.head.root)
        assert oct(journal_of(place).stat().st_mode & 0o777) == "0o600"


def test_a_line_names_nobody_and_an_auditor_gets_no_digests(place: Place, tmp_path: Path) -> None:
    with filled(place) as vault:
        vault.forget(users=["ann"], case="DSR-7", by="clerk")
        own = journal_of(place).read_text()
        assert vault.export(tmp_path / "export.jsonl").head.size == 2
        exported = (tmp_path / "export.jsonl").read_text()
    for text in (own, exported):
        assert not any(f'"{name}"' in text for name in ("ann", "DSR-7", "clerk"))
    lines = [json.loads(line) for line in exported.splitlines()]
    assert not any(name in line for line in lines for name in ("suppressed", "readmitted", "people"))
    assert len([each for line in lines for each in line["entries"]]) == 2
    shutil.copy(tmp_path / "export.jsonl", tmp_path / "copy.jsonl")
    assert Journal(tmp_path / "copy.jsonl").last().size == 2


@pytest.mark.parametrize("after", ["kill", "failure", "torn line"])
def test_what_a_process_could_not_write_comes_with_the_next_command(
    place: Place, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = journal_of(place)
    with filled(place) as vault:
        before = journal.read_bytes()
        if after == "failure":
            monkeypatch.setattr(Journal, "catch_up", raising(VaultError("the disk is full")))
            with pytest.raises(UnfinishedError, match="the change itself is committed, and the next command"):
                vault.forget(users=["ann"], case="DSR-7")
            monkeypatch.undo()
        else:
            vault.forget(users=["ann"], case="DSR-7")
        vault.forget(users=["cem"])
        vault.readmit(users=["cem"])
        vault.ingest({**LOG, "id": [f"x{name}" for name in LOG["id"]]}, user="who", id="id")
    whole = journal.read_bytes()
    if after != "failure":
        journal.write_bytes(before + (b"" if after == "kill" else whole[len(before) :][:50]))
    with place.open() as vault:
        assert vault.head.size == 4
        lines = list(vault.journal.lines())
        assert (lines[-1].size, lines[-1].root) == (4, vault.head.root)
        assert [entry for line in lines for entry in line.entries]
        assert vault.verify().problems == ()
        backup = journal.read_bytes()
    # What was made up for is as good as what was written at once: a restore finds everything in it.
    assert Vault.restore(place.url, keys=place.keys).replayed == 0
    assert journal.read_bytes().startswith(backup)
    with place.open() as vault:
        assert vault.verify().problems == ()
        assert vault.forget(users=["ann"]).repeated
        assert vault.entries_of_case("DSR-7") == [2]
        assert vault.certificate(users=["ann"]).verify(vault.public_key()) == []


def test_an_open_vault_refuses_an_older_copy_too(postgres_place: Place, tmp_path: Path) -> None:
    with filled(postgres_place) as vault:
        backup = Snapshot(postgres_place, vault, tmp_path)
        vault.forget(users=["ann"])
        backup.put_back()
        for ask in (vault.decide, vault.status, lambda: vault.forget(users=["bob"])):
            with pytest.raises(VaultError, match="older than its journal"):
                ask()


@pytest.fixture
def forked(place: Place, tmp_path: Path) -> tuple[Place, Place]:
    """Two copies of a vault, each with its journal: in each another person was forgotten."""
    (tmp_path / "other").mkdir()
    other = fresh_place("sqlite" if place.url.startswith("sqlite") else "postgresql", tmp_path / "other")
    with filled(place) as vault:
        copy_to(vault, place, other)
        vault.forget(users=["ann"])
    with other.open() as vault:
        vault.forget(users=["bob"])
    return place, other


def test_a_forked_copy_is_refused_and_the_longest_journal_counts(forked: tuple[Place, Place]) -> None:
    place, other = forked
    with other.open() as vault:
        vault.forget(users=["cem"])
    own = journal_of(place).read_bytes()
    journal_of(place).write_bytes(journal_of(other).read_bytes())
    with pytest.raises(VaultError, match=r"older than its journal|is not that of its journal"):
        place.open()
    with pytest.raises(VaultError, match="is not the beginning of the journal's"):
        Vault.restore(place.url, keys=place.keys)
    journal_of(place).write_bytes(own)
    with pytest.raises(VaultError, match=r"is not the beginning of the journal's|does not go on from"):
        Vault.restore(place.url, journal_of(other), keys=place.keys)
    with place.open() as vault:
        assert vault.verify().problems == ()
        assert vault.forget(users=["bob", "cem"]).held == 2  # as new entries


def test_a_host_without_the_current_key_is_refused(place: Place, tmp_path: Path) -> None:
    with filled(place) as vault:
        old = place.keys.read_bytes()
        vault.rotate_signing_key()
    place.keys.write_bytes(old)
    with pytest.raises(ArmnesiaError):
        place.open()


def test_a_lost_journal_is_refused_unless_told(place: Place) -> None:
    with filled(place) as vault:
        vault.forget(users=["ann"])
        vault.forget(users=["bob"], case="DSR-9")
    journal_of(place).unlink()
    for ask in (place.open, lambda: Vault.restore(place.url, keys=place.keys)):
        with pytest.raises(
            VaultError, match=r"is missing: .* armnesia restore --without-journal begins a new one"
        ):
            ask()
    assert Vault.restore(place.url, keys=place.keys, without_journal=True).replayed == 0
    with pytest.raises(VaultError, match="is there: run armnesia restore"):
        Vault.restore(place.url, keys=place.keys, without_journal=True)
    with place.open() as vault:
        assert [entry.kind for entry in vault.ledger().entries][-2:] == ["without_journal", "restored"]
        assert vault.verify().problems == ()
        assert vault.forget(users=["ann"]).repeated
        assert vault.entries_of_case("DSR-9") == [3]


def test_a_backup_given_as_journal_is_recognised(sqlite_place: Place, tmp_path: Path) -> None:
    with filled(sqlite_place) as vault:
        vault.back_up(tmp_path / "backup.db")
    with pytest.raises(VaultError, match="is an SQLite database: give the journal, which lies beside"):
        Vault.restore(sqlite_place.url, tmp_path / "backup.db", keys=sqlite_place.keys)


def test_the_journal_of_another_vault_is_refused(place: Place, tmp_path: Path) -> None:
    filled(place).close()
    (tmp_path / "other").mkdir()
    other = fresh_place("sqlite", tmp_path / "other")
    filled(other).close()
    with pytest.raises(VaultError, match="nothing was changed"):
        Vault.restore(place.url, journal_of(other), keys=place.keys)
    journal_of(place).write_bytes(journal_of(other).read_bytes())
    with pytest.raises(VaultError, match="is not that of its journal"):
        place.open()


def test_two_connections_take_turns(place: Place) -> None:
    with filled(place) as one, place.open() as other:
        for number, vault in enumerate((one, other) * 3):
            vault.forget(users=[f"nobody-{number}"])
        assert one.head == other.head
        assert [line.size for line in one.journal.lines()][-6:] == [2, 3, 4, 5, 6, 7]
        assert one.verify().problems == other.verify().problems == ()


def test_a_key_file_has_one_journal_by_every_name(sqlite_place: Place, tmp_path: Path) -> None:
    """A link to it is no other key file, and a rotation writes into the file itself."""
    place, link = sqlite_place, tmp_path / "link.keys"
    with filled(place) as vault:
        backup = Snapshot(place, vault, tmp_path)
    link.symlink_to(place.keys)
    with Vault.open(place.url, keys=link) as vault:
        vault.forget(users=["ann"])
        vault.rotate_signing_key()
    assert link.is_symlink()
    assert not link.with_name("link.keys.journal").exists()
    backup.put_back()
    for keys in (link, place.keys):
        with pytest.raises(VaultError, match="older than its journal"):
            Vault.open(place.url, keys=keys)


@pytest.mark.parametrize("who", ["ann", "bob"])
def test_a_new_vault_keeps_out_whom_another_forgot(place: Place, tmp_path: Path, who: str) -> None:
    with filled(place) as vault:
        vault.forget(users=["ann", "bob"])
        vault.forget(records=["r6"])
        vault.readmit(users=["bob"])
        configuration = vault.configuration
    (tmp_path / "new").mkdir()
    new = fresh_place("sqlite", tmp_path / "new")
    with Vault.create(new.url, configuration, keys=new.keys, forgotten_from=journal_of(place)) as vault:
        done = vault.ingest(LOG, user="who", id="id")
        assert (done.added, done.suppressed) == (3, 3)
        assert vault.forget(users=[who], exactly=True).held == (who == "bob")
        assert vault.verify().problems == ()


def test_whom_another_vault_forgot_is_forgotten_here_and_admitted_again(place: Place, tmp_path: Path) -> None:
    """Rows at a source that were never counted are not taken off."""
    source = tmp_path / "log.csv"
    rows = zip(*LOG.values(), strict=True)
    source.write_text("\n".join([",".join(LOG), *(",".join(map(str, row)) for row in rows)]) + "\n")
    with filled(place) as vault:
        vault.forget(users=["ann", "bob"])
    (tmp_path / "new").mkdir()
    new = fresh_place("sqlite", tmp_path / "new")
    configuration = Configuration(actions=("A", "B"), mode="external", user_type=UserType.TEXT)
    with Vault.create(new.url, configuration, keys=new.keys, forgotten_from=journal_of(place)) as vault:
        assert vault.ingest(str(source), user="who", id="id").added == 3
        with pytest.raises(VaultError, match="nobody was forgotten here by this name"):
            vault.certificate(users=["ann"])
        done = vault.forget(users=["ann"])
        assert (done.repeated, done.held, done.records) == (False, 0, 0)
        assert done.certificate is not None
        assert done.certificate.verify(vault.public_key()) == []
        assert vault.readmit(users=["bob"]).readmitted == 1
        assert vault.forget(users=["bob"]).records == 1
        assert vault.verify().problems == ()


def test_an_export_is_no_journal_and_writes_over_none(sqlite_place: Place, tmp_path: Path) -> None:
    with filled(sqlite_place) as vault:
        vault.forget(users=["ann"])
        before = vault.journal.path.read_bytes()
        with pytest.raises(VaultError, match="exists already and is no export of this vault"):
            vault.export(vault.journal.path)
        assert vault.journal.path.read_bytes() == before
        vault.export(tmp_path / "export.jsonl")
        vault.export(tmp_path / "export.jsonl")
    with pytest.raises(VaultError, match="it is an export for auditors, or was changed"):
        Vault.restore(sqlite_place.url, tmp_path / "export.jsonl", keys=sqlite_place.keys)


def test_lists_of_a_journal_that_were_changed_are_found(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        vault.forget(users=["ann"])
        path = vault.journal.path
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        del lines[-1]["suppressed"]
        path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
        assert vault.verify().problems == (
            "journal: whoever is suppressed there is not who is suppressed in the vault",
        )


def test_a_witness_gets_checkpoints_and_stops_nothing(sqlite_place: Place, tmp_path: Path) -> None:
    with filled(sqlite_place) as vault:
        vault.name_witness(str(tmp_path / "kept.txt"))
        vault.forget(users=["ann"])
        assert vault.status().witnessed == vault.head.size
        assert (tmp_path / "kept.txt").read_text().count("\n\n") == 2
        vault.witness.path.write_text(json.dumps({"to": str(tmp_path / "kept.txt"), "told": 99}))
        assert any("has a checkpoint of 99 entries" in problem for problem in vault.verify().problems)
        for to in ("https://no host/a b", str(tmp_path / "no-such-folder" / "file")):
            vault.name_witness(to)
            vault.forget(users=["bob"])
            assert vault.status().witnessed == 0
        vault.witness.path.write_text("torn{")
        assert vault.forget(users=["cem"]).certificate is not None
        vault.name_witness("")
        assert vault.status().witness is None


def test_what_was_compacted_before_a_deletion_or_a_restore_is_not_told_of_it(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        vault.compact()
        vault.forget(users=["ann"])
        assert vault.certificate(users=["ann"]).later == ()
        vault.compact()
        assert [each.entry.kind for each in vault.certificate(users=["ann"]).later] == ["compacted"]
    Vault.restore(sqlite_place.url, keys=sqlite_place.keys)
    with sqlite_place.open() as vault:
        assert vault.certificate(users=["ann"]).later == ()
        assert vault.status().uncompacted == 1
