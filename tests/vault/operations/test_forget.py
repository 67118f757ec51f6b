"""Requests: what an entry and a certificate say of them, who was forgotten before, and who comes in again."""

from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError, PolicyError, UnknownEntryError, VaultError
from armnesia.privacy import Level
from armnesia.vault import Certificate, Configuration, ForgetRequest, Policy, UserType
from tests.databases import Place
from tests.vault.raw_vaults import COLUMNS, LOG, dumped, filled

KEYED = {"by": ("page",)}
PAGES = {**LOG, "page": ["x", "x", "y", "y", "x", "y"]}


def entry_number(certificate: Certificate | None) -> int:
    assert certificate is not None
    return certificate.entry.number


def test_each_of_a_request_gets_a_certificate_that_names_nobody_else(place: Place) -> None:
    with filled(place) as vault:
        done = vault.forget(users=["ann", "bob", "zoe"])
        assert (done.entry, done.named, done.held, done.certificate) == (2, 3, 2, None)
        assert done.not_held == ("zoe",)
        outcomes = {"ann": "deleted", "bob": "deleted", "zoe": "nothing"}
        for name, outcome in outcomes.items():
            file = vault.certificate(users=[name]).to_json()
            certificate = Certificate.read(file)
            assert certificate.verify(vault.public_key()) == []
            assert certificate.person is not None
            assert (certificate.person.text, certificate.person.outcome) == (name, outcome)
            assert not any(f'"{other}"' in file for other in outcomes if other != name)
        assert [name for name, _ in vault.certificates(users=["bob", "eve"])] == ["bob", "eve"]
        assert dict(vault.certificates(users=["bob", "eve"]))["eve"] is None
        assert vault.certificate(entry=2).person is None
        assert vault.certificate(entry=2).verify(vault.public_key()) == []
        for wrong in (1, 3):
            with pytest.raises(UnknownEntryError):
                vault.certificate(entry=wrong)
        with pytest.raises(InvalidInputError, match="a certificate is of one person or record"):
            vault.certificate(users=["ann", "bob"])
        with pytest.raises(VaultError, match="nobody was forgotten here by this name"):
            vault.certificate(users=["cem"])


def test_a_certificate_after_the_answer_is_the_one_of_the_answer(place: Place) -> None:
    with filled(place) as vault:
        done = vault.forget(users=["ann"], case="DSR-7", by="clerk")
        assert done.certificate == vault.certificate(users=["ann"])
        text = done.certificate.words().text()
        assert "Case: DSR-7\n" in text
        assert "Entered by: clerk\n" in text


def test_whoever_was_forgotten_before_keeps_the_first_entry(place: Place) -> None:
    with filled(place) as vault:
        first = vault.forget(users=["ann"])
        again = vault.forget(users=["ann"], case="DSR-7")
        assert again.repeated
        assert (again.entry, vault.head.size) == (first.entry, 2)
        assert entry_number(again.certificate) == 2
        assert vault.preview(users=["ann", "bob"]).forgotten_before == 1
        some = vault.forget(users=["ann", "bob"])
        assert (some.repeated, some.entry, some.named, some.held) == (False, 3, 2, 1)
        assert [(each.entry, each.names) for each in some.forgotten_before] == [(2, ("ann",))]
        assert some.forgotten_before[0].time == vault.ledger().entries[1].time
        assert some.not_held == ()
        assert entry_number(some.certificate) == 3  # it is about bob alone
        assert entry_number(vault.certificate(users=["ann"])) == 2
        with pytest.raises(VaultError, match="the request of entry 3 has no user of this name"):
            vault.certificate(users=["ann"], entry=3)
        both = vault.forget(users=["bob", "ann"])
        assert [(each.entry, each.names) for each in both.forgotten_before] == [(2, ("ann",)), (3, ("bob",))]
        assert both.repeated
        assert vault.head.size == 3
        records = vault.forget(records=["r4", "r1"])  # the row r1 was ann's; an id is another name
        assert (records.held, records.not_held) == (1, ("r1",))


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize(
    ("unlearner", "level"),
    [("rollback", "retained"), ("tilt", "request_shape"), ("frozen_rollback", "request_shape")],
)
def test_the_entry_does_not_say_whether_anybody_was_found(
    sqlite_place: Place, unlearner: str, level: str, keyed: bool
) -> None:
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 0.01} if unlearner == "tilt" else {}
    configuration = Configuration(
        actions=("A", "B"),
        user_type=UserType.TEXT,
        columns=COLUMNS,
        unlearner=unlearner,
        penalty="frozen" if unlearner == "frozen_rollback" else "retained",
        policy=Policy(1.0, 0.1, tuple(Level)),
        **options,
        by=KEYED["by"] if keyed else (),
    )
    with sqlite_place.create(configuration) as vault:
        vault.ingest(PAGES)
        vault.forget(users=["bob"])
        vault.forget(users=["nobody"])
        vault.forget(records=["nothing"])
        entries = vault.ledger().entries[1:]
        assert [entry.kind for entry in entries] == ["forget"] * 3
        found, *others = (set(entry.facts) for entry in entries)
        for facts in others:
            assert facts == found
        assert {entry.facts["level"] for entry in entries} == {level}
        assert level != "retained" or not found & {"counts", "decisions", "held"}
        later = {**PAGES, "who": ["nobody"] * 6, "id": list("abcdef")}
        assert vault.ingest(later, user="who", id="id").added == 0


@pytest.mark.parametrize("user", ["bob", "nobody"])
@pytest.mark.parametrize("keyed", [False, True])
def test_nor_does_what_is_said_to_have_chosen_the_arms(sqlite_place: Place, user: str, keyed: bool) -> None:
    """Readers see it, also where the level conceals whether somebody was held."""
    policy = Policy(1.0, 0.1, tuple(Level))
    configuration = Configuration(actions=("A", "B"), policy=policy, by=KEYED["by"] if keyed else ())
    with sqlite_place.create(configuration) as vault:
        vault.ingest(PAGES, user="who", id="id")
        if keyed:
            vault.forget(users=["dan"], unlearner="tilt", epsilon=1.0, delta=0.01)
            assert "release" in vault.decisions().chosen_by
        vault.forget(users=[user])
        assert set(vault.decisions().chosen_by) == {"learner" if keyed else "release"}


def test_case_and_actor_are_opened_in_the_certificate_and_nowhere_else(place: Place, tmp_path: Path) -> None:
    with filled(place) as vault:
        vault.forget(users=["ann"], case="DSR-2026/12", by="clerk@example.com")
        vault.forget(users=["bob", "cem"], case="DSR-2026/12", by="clerk@example.com")
        vault.forget(users=["dan"])
        assert vault.entries_of_case("DSR-2026/12") == [2, 3]
        assert vault.entries_of_case("DSR-2026/1") == []
        for name in ("ann", "bob"):
            said = {each.mention.role: each.mention.text for each in vault.certificate(users=[name]).openings}
            assert said == {"user": name, "case": "DSR-2026/12", "actor": "clerk@example.com"}
        vault.export(tmp_path / "export.jsonl")
        everything = [*(entry.payload.decode() for entry in vault.ledger().entries), repr(dumped(vault))]
        for text in (*everything, (tmp_path / "export.jsonl").read_text()):
            assert "DSR-2026" not in text
            assert "clerk" not in text
        before = dumped(vault)
        for case in ("request of Eve", "eve", "EVE: 7"):
            with pytest.raises(InvalidInputError, match="the case must not name anybody"):
                vault.forget(users=["fay", "eve"], case=case)
        assert dumped(vault) == before


def test_a_readmission_shows_in_the_old_certificate_and_a_later_request_is_a_new_entry(place: Place) -> None:
    with filled(place) as vault:
        first = vault.forget(users=["ann", "bob"])
        old = vault.certificate(users=["ann"])
        done = vault.readmit(users=["ann"])
        assert (done.readmitted, done.entry) == (1, 3)
        assert vault.ledger().entries[-1].facts["ends"] == [first.entry]
        shown = vault.certificate(users=["ann"])
        assert shown.summary()["later"] == ["readmit"]
        assert "people of this request were admitted again (entry 3)" in shown.words().text()
        for certificate in (old, shown):  # each as of its checkpoint
            assert certificate.verify(vault.public_key()) == []
        with pytest.raises(VaultError, match=r"1 of the 2 named is not on the suppression list"):
            vault.readmit(users=["ann", "bob"])
        assert vault.ingest(LOG, user="who", id="id").added == 2  # ann's rows come back, bob's do not
        again = vault.forget(users=["ann"])
        assert (again.repeated, again.entry, again.records) == (False, 4, 2)
        assert entry_number(vault.certificate(users=["ann"])) == 4
        earlier = vault.certificate(users=["ann"], entry=2)
        assert (earlier.entry, earlier.summary()["later"]) == (old.entry, ["readmit"])
        assert earlier.verify(vault.public_key()) == []
        assert vault.forget(users=["ann"]).repeated
        assert vault.verify().problems == ()


def test_compacting_is_a_later_entry_of_all_certificates(place: Place) -> None:
    with filled(place) as vault:
        vault.forget(users=["ann"])
        assert vault.certificate(users=["ann"]).summary()["later"] == []
        assert vault.compact().entry == 3
        vault.compact()
        vault.forget(users=["bob"])
        for name, later in (("ann", ["compacted"]), ("bob", [])):
            certificate = vault.certificate(users=[name])
            assert certificate.summary()["later"] == later
            assert certificate.verify(vault.public_key()) == []


def test_certificates_of_many_are_files_for_their_owner(sqlite_place: Place, tmp_path: Path) -> None:
    with filled(sqlite_place) as vault:
        vault.forget(users=["ann", "zoe"])
        saved = vault.save_certificates(tmp_path / "folder", users=["zoe", "eve", "ann"])
        assert (saved.written, saved.missing) == (2, 1)
        files = sorted(path.name for path in (tmp_path / "folder").iterdir())
        assert files == ["certificate-000001.json", "certificate-000002.json", "index.csv"]
        assert oct((tmp_path / "folder").stat().st_mode & 0o777) == "0o700"
        assert (tmp_path / "folder" / "index.csv").read_text().splitlines() == [
            '"file","name","entry","outcome"',
            '"certificate-000001.json","ann","2","deleted"',
            '"","eve","",""',
            '"certificate-000002.json","zoe","2","nothing"',
        ]
        for file in files[:2]:
            text = (tmp_path / "folder" / file).read_text()
            assert Certificate.read(text).verify(vault.public_key()) == []
        with pytest.raises(InvalidInputError, match="the folder must be a new one"):
            vault.save_certificates(tmp_path / "folder", users=["ann"])


def test_a_group_is_one_entry_each_and_certificates_agree_with_a_checkpoint(place: Place) -> None:
    with filled(place) as vault:
        requests = [ForgetRequest(users=[name], case=f"DSR-{name}") for name in ("ann", "bob")]
        requests[1] = ForgetRequest(users=["bob"], case="DSR 7")
        refused, bob = vault.forget_many(requests)
        assert isinstance(refused, InvalidInputError)
        assert not isinstance(bob, Exception)
        assert bob.certificate is not None
        kept = vault.checkpoint()
        assert bob.certificate.verify(vault.public_key(), kept) == []
        vault.forget(users=["cem"])
        (problem,) = vault.certificate(users=["bob"]).verify(vault.public_key(), kept)
        assert problem.startswith("the checkpoint that was kept has 2 entries, that of the certificate 3: ")
        assert vault.check_ledger(kept).problems == ()


def test_whoever_is_not_held_is_refused_by_the_policy_as_others_are(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        asked: dict[str, Any] = {"unlearner": "gaussian", "epsilon": 1.0, "delta": 0.01}
        for name in ("ann", "zoe"):
            with pytest.raises(PolicyError, match="the vault's policy allows up to"):
                vault.forget(users=[name], **asked)
        vault.change_policy(beyond="rollback")
        for name in ("ann", "zoe"):
            vault.forget(users=[name], **asked)
        one, two = (entry.facts for entry in vault.ledger().entries[-2:])
        assert (one["unlearner"], one["level"]) == ({"name": "rollback"}, "retained")
        assert {**one, "released": None} == {**two, "released": None}
