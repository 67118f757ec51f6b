"""A vault that succeeds another: forgotten people stay out of it, and old certificates stay verifiable."""

import json
import shutil
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from armnesia.core.errors import InvalidInputError, VaultBusyError, VaultError
from armnesia.vault import (
    EXTERNAL,
    Certificate,
    Configuration,
    ForgetRequest,
    Forgotten,
    Keyring,
    LedgerCopy,
    PublicKeys,
    UserType,
    Vault,
)
from armnesia.vault.keys.canonical_json import canonical
from armnesia.vault.ledger.ledger import Entry
from armnesia.vault.ledger.public_keys import rotation_problems
from armnesia.vault.operations import create
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.inheritance import Inheritance
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from tests.databases import Place, fresh_place
from tests.vault.raw_vaults import LOG, change, dumped, filled, values

OTHER = Configuration(actions=("A", "B", "C"), reward_range=(0.0, 5.0), learner="kl_lcb")


def erased(vault: Vault) -> None:
    """Complete all erasures, as PostgreSQL needs it before a vault is left."""
    vault.compact()
    assert vault.finish().erasure == "complete"


def succeed(
    old: Place, new: Place, configuration: Configuration | None = None, *, erasures_first: bool = True
) -> Vault:
    if erasures_first and old.url.startswith("postgresql"):
        with suppress(VaultError), old.open() as vault:  # what refuses that is refused below
            erased(vault)
    return Vault.create(new.url, configuration, keys=new.keys, successor_of=old.url, successor_keys=old.keys)


@pytest.fixture
def new_place(tmp_path: Path) -> Place:
    return fresh_place("sqlite", tmp_path)


@pytest.mark.filterwarnings("ignore:user column .* has white space around names")
def test_whoever_was_forgotten_stays_out_of_the_successor(place: Place, tmp_path: Path) -> None:
    with filled(place) as old:
        old.forget(users=["ann", "nobody"])
        old.forget(records=["r6"])
        old.forget(users=["bob"])
        old.readmit(users=["bob"])
        erased(old)
        head = old.head
    new = fresh_place("postgresql" if place.url.startswith("postgresql") else "sqlite", tmp_path)
    with succeed(place, new, OTHER) as vault:
        assert vault.configuration.reward_range == (0.0, 5.0)
        assert vault.configuration.user_type is UserType.TEXT
        assert vault.status().suppressed == 3
        assert vault.verify().holds
        found = vault.ingest(
            {**LOG, "who": [" ann ", "bob", "ann", "cem", "dan", "dan"]}, user="who", id="id"
        )
        assert (found.added, found.suppressed) == (3, 3)
        later = {"action": ["A", "A"], "reward": [5.0, 4.0], "who": ["nobody", "eve"], "id": ["r7", "r8"]}
        assert vault.ingest(later, user="who", id="id").suppressed == 1
        assert vault.verify().holds
        (before,) = vault.predecessors()
        with place.open() as old:
            assert old.ledger()[-1].fields["previous"] == head.hash
            head = old.head
        assert (before.head, before.vault) == (head, Keyring.read(place.keys).vault)
        first = json.loads(values(vault, "SELECT entry FROM ledger")[0][0])
        assert (first["sequence"], first["predecessors"][-1]["head"]) == (1, str(head))


@pytest.mark.filterwarnings("ignore:user column .* has white space around names")
@pytest.mark.parametrize(
    ("user_type", "forgotten", "spellings"),
    [
        (UserType.INTEGER, "17", ["17", "017", "17.0", " 17 ", "+17"]),
        (UserType.TEXT, "Zo\u00eb", ["Zo\u00eb", "Zoe\u0308", " Zo\u00eb\t"]),
        (UserType.EXACT, "17", ["17"]),
    ],
)
def test_they_stay_out_in_every_spelling_that_the_old_vault_knew(
    place: Place, new_place: Place, user_type: UserType, forgotten: str, spellings: list[str]
) -> None:
    with place.create(Configuration(actions=("A",), user_type=user_type)) as old:
        old.forget(users=[forgotten])
        kept = old.ingest(_rows(spellings), user="who").suppressed
    assert kept == len(spellings)
    with succeed(place, new_place) as vault:
        found = vault.ingest(_rows(spellings), user="who")
        assert (found.added, found.suppressed) == (0, len(spellings))


def _rows(users: list[str]) -> pd.DataFrame:
    numbers = range(len(users))
    return pd.DataFrame({"action": "A", "reward": [number / 100 for number in numbers], "who": users})


def test_a_forgotten_record_stays_out_in_every_spelling(place: Place, new_place: Place) -> None:
    log = {"action": ["A", "B"], "reward": [1, 0], "user": ["ann", "bob"], "id": ["17", "18"]}
    with place.create(Configuration(actions=("A", "B"))) as old:
        old.ingest(log, id="id")
        old.forget(records=["17"])
    with succeed(place, new_place) as vault:
        assert vault.ingest(log, id="id").suppressed == 1
        with pytest.raises(VaultError, match=r"'17\.0' in row 0, which may be '17'"):
            vault.ingest({**log, "id": ["17.0", "18"]}, id="id")


@pytest.mark.parametrize("rotated", ["before", "after", "both"])
def test_keys_may_be_rotated_before_and_after(place: Place, new_place: Place, rotated: str) -> None:
    with filled(place) as old:
        old.forget(users=["ann"])
        if rotated != "after":
            old.rotate_digest_key()
            old.rotate_signing_key()
    with succeed(place, new_place) as vault:
        old_keys, new_keys = Keyring.read(place.keys), Keyring.read(new_place.keys)
        assert new_keys.digest_keys[:-1] == old_keys.digest_keys
        assert not set(new_keys.signing_keys) & set(old_keys.signing_keys)
        if rotated != "before":
            vault.rotate_digest_key()
            vault.rotate_signing_key()
        assert vault.ingest(LOG, user="who", id="id").suppressed == 2
        assert vault.verify().holds
        assert vault.status().digest_key == len(Keyring.read(new_place.keys).digest_keys)


def test_a_successor_can_be_restored_and_rebuilt(place: Place, new_place: Place, tmp_path: Path) -> None:
    """What the ledger says of its keys and its list is enough to replay it."""
    with filled(place) as old:
        old.forget(users=["ann"])
    backup, export = tmp_path / "backup.db", tmp_path / "export.json"
    with succeed(place, new_place) as vault:
        vault.ingest(LOG, user="who", id="id")
        vault.back_up(backup)
        vault.forget(users=["bob"])
        vault.export(export, for_restore=True)
    shutil.copy(backup, new_place.path)
    Vault.restore(new_place.url, export, keys=new_place.keys)
    with new_place.open() as vault:
        assert (vault.status().records, vault.status().suppressed) == (3, 2)
        assert vault.verify().holds
        change(vault, "UPDATE vault SET digest_key = 1")
    with new_place.open(accept="damaged") as vault:
        vault.rebuild()
    with new_place.open() as vault:
        assert vault.verify().holds
        assert vault.ingest(LOG, user="who", id="id").suppressed == 3


def test_old_certificates_are_verified_with_the_keys_in_the_successors_export(
    place: Place, new_place: Place, tmp_path: Path
) -> None:
    with filled(place) as old:
        certificate = old.forget(users=["ann"]).certificate
        old.rotate_signing_key()
        later = old.forget(users=["bob"]).certificate
        old_export = tmp_path / "old.json"
        old.export(old_export)
    with succeed(place, new_place) as vault:
        (keys,) = vault.predecessors()
        vault.export(tmp_path / "new.json")
        own = vault.forget(users=["cem"]).certificate
        own_keys = vault.public_keys()
    exported = json.loads((tmp_path / "new.json").read_text())
    published = PublicKeys.from_json(
        json.dumps(json.loads(exported["ledger"][0]["entry"])["predecessors"][0])
    )
    assert published == keys
    for one in (certificate, later):
        assert one.check(published, ledger=LedgerCopy.read(old_export)).problems == ()
        unknown, of_another, of_successor = one.verify(
            own_keys, ledger=LedgerCopy.read(tmp_path / "new.json")
        )
        assert "not among the public keys given" in unknown
        assert of_another.startswith(f"the list of public keys is that of another vault, {own_keys.vault}")
        (alone,) = one.verify(published, ledger=LedgerCopy.read(tmp_path / "new.json"))
        assert of_successor == alone
        assert alone.startswith(f"the ledger given is that of the vault {own_keys.vault}, a successor of")
        assert alone.endswith(f"when it was succeeded, its head was {keys.head}")
    assert own.verify(own_keys) == []
    assert own.verify(published) != []


def test_the_ledger_of_a_successor_decides_nothing_about_a_genuine_certificate(
    sqlite_place: Place, new_place: Place, tmp_path: Path
) -> None:
    with filled(sqlite_place) as old:
        certificate = old.forget(users=["ann"]).certificate
        old.rotate_signing_key()
        later = old.forget(users=["bob"]).certificate
        keys = old.public_keys()
    with succeed(sqlite_place, new_place) as vault:
        vault.export(tmp_path / "new.json")
    ledger = LedgerCopy.read(tmp_path / "new.json")
    for one in (certificate, later):
        found = one.check(keys, ledger=ledger)
        assert (found.valid, found.decided) == (False, False)
        assert not one.check(keys, ledger=ledger, head=keys.head).decided
        refused = one.check(list(keys), ledger=ledger)  # nothing says which keys that vault had
        assert (refused.valid, refused.decided) == (False, True)


def test_the_ledger_of_a_successor_makes_no_forged_certificate_undecided(
    sqlite_place: Place, new_place: Place, tmp_path: Path
) -> None:
    with filled(sqlite_place) as old:
        certificate = old.forget(users=["ann"]).certificate
        old.forget(users=["bob"])
        stolen = Keyring.read(sqlite_place.keys)
        old.rotate_signing_key(compromised_since=3)
        newest = Keyring.read(sqlite_place.keys)
        keys = old.public_keys()
    with succeed(sqlite_place, new_place) as vault:
        vault.export(tmp_path / "new.json")
        own_keys = vault.public_keys()
    with sqlite_place.open() as old:
        head = old.head  # which the successor names
    with filled(fresh_place("sqlite", tmp_path)) as stranger:
        stranger.export(tmp_path / "stranger.json")
        foreign = stranger.forget(users=["ann"]).certificate
    ledger, unrelated = LedgerCopy.read(tmp_path / "new.json"), LedgerCopy.read(tmp_path / "stranger.json")

    def signed(keyring: Keyring, **changes: object) -> Certificate:
        body = {**certificate.body, **changes}
        body["signing_key"] = {"version": keyring.signing_version, "public": keyring.public_key()}
        return Certificate(body, keyring.sign(canonical(body).encode()), certificate.opening)

    wrong_hash = f"{head.sequence}:{'ab' * 32}"
    forged = {
        "changed": Certificate({**certificate.body, "issued": "2020"}, certificate.signature, None),
        "a key that was stolen, before the theft": signed(
            stolen, issued_at_head=certificate.body["issued_at_head"]
        ),
        "a key that was stolen, after it": signed(stolen, issued_at_head=wrong_hash),
        "an entry that the successor knows": signed(newest, issued_at_head=wrong_hash),
        "another vault": foreign,
    }
    for what, one in forged.items():
        found = one.check(keys, ledger=ledger)
        assert (found.valid, found.decided) == (False, True), what
    for given, other in ((keys, unrelated), (own_keys, ledger)):
        found = certificate.check(given, ledger=other)
        assert (found.valid, found.decided) == (False, True)


def test_names_forgotten_in_the_old_vault_can_be_forgotten_and_readmitted(
    place: Place, new_place: Place
) -> None:
    with filled(place) as old:
        old.forget(users=["ann"])
        vault_id = old.identity().vault
    with succeed(place, new_place) as vault:
        with pytest.raises(VaultError, match=f"forgotten in the vault {vault_id}, which this one succeeds"):
            vault.certificate(users=["ann"])
        with pytest.raises(VaultError, match="it was not made"):
            vault.certificate(users=["bob"])
        done = vault.forget(users=["ann", "bob"])
        assert (done.repeated, done.held) == (False, 0)
        for user in ("ann", "bob"):
            assert vault.certificate(users=[user]).verify(vault.public_keys()) == []
        vault.readmit(users=["ann"])
        assert vault.ingest(LOG, user="who", id="id").suppressed == 1
        assert vault.verify().holds


def test_a_successor_of_a_successor_has_the_keys_of_both(
    place: Place, new_place: Place, tmp_path: Path
) -> None:
    with filled(place) as oldest:
        certificate = oldest.forget(users=["ann"]).certificate
    with succeed(place, new_place) as older:
        older.forget(users=["bob"])
    newest = fresh_place("sqlite", tmp_path)
    with succeed(new_place, newest) as vault:
        assert [keys.vault for keys in vault.predecessors()] == [
            Keyring.read(place.keys).vault for place in (place, new_place)
        ]
        assert certificate.verify(vault.predecessors()[0]) == []
        assert vault.ingest(LOG, user="who", id="id").suppressed == 3
        assert vault.verify().holds


def test_rows_may_stay_at_their_source_in_the_successor(
    place: Place, new_place: Place, tmp_path: Path
) -> None:
    with filled(place) as old:
        old.forget(users=["ann"])
        old.forget(records=["r6"])
    log = tmp_path / "log.csv"
    pd.DataFrame({**LOG, "page": ["x", "y", "x", "y", "x", "y"]}).to_csv(log, index=False)
    with succeed(place, new_place, Configuration(actions=None, mode=EXTERNAL, by=("page",))) as vault:
        found = vault.ingest(str(log), user="who", id="id")
        assert (found.added, found.suppressed, found.decisions) == (3, 3, 2)
        assert vault.verify().problems == ()


def _tamper_list(old: Vault, place: Place) -> None:
    assert change(old, "DELETE FROM suppressed WHERE kind = 'user'") == 1


def _tamper_readmission(old: Vault, place: Place) -> None:
    assert change(old, "UPDATE suppressed SET readmitted = 3 WHERE kind = 'user'") == 1


def _tamper_ledger(old: Vault, place: Place) -> None:
    assert change(old, "UPDATE ledger SET entry = replace(entry, 'retained', 'retainex') WHERE sequence = 2")


def _tamper_state(old: Vault, place: Place) -> None:
    assert change(old, "UPDATE vault SET erased_through = 99") == 1


def _tamper_schema(old: Vault, place: Place) -> None:
    change(old, "CREATE TABLE other (one INTEGER)")


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (_tamper_list, "the suppression list was changed by something other than armnesia"),
        (_tamper_readmission, "the suppression list was changed by something other than armnesia"),
        (_tamper_ledger, "sequence 2: .*such a vault has no successor"),
        (_tamper_state, "changed by something other than armnesia"),
        (_tamper_schema, r"other(' that| is in the vault's schema, and) armnesia did not create"),
    ],
)
def test_a_vault_that_is_not_intact_has_no_successor(
    place: Place, new_place: Place, tamper: Callable[[Vault, Place], None], message: str
) -> None:
    with filled(place) as old:
        old.forget(users=["ann"])
        old.forget(records=["r6"])
        old.finish()
        tamper(old, place)
    with pytest.raises(VaultError, match=message):
        succeed(place, new_place)
    assert not new_place.path.exists()
    assert not new_place.keys.exists()


def test_an_old_copy_has_no_successor(sqlite_place: Place, new_place: Place, tmp_path: Path) -> None:
    with filled(sqlite_place) as old:
        old.back_up(tmp_path / "backup.db")
        old.forget(users=["ann"])
    shutil.copy(tmp_path / "backup.db", sqlite_place.path)
    with pytest.raises(VaultError, match="older than its pinned head"):
        succeed(sqlite_place, new_place)
    assert not new_place.path.exists()


def test_a_vault_with_pending_erasures_has_no_successor(sqlite_place: Place, new_place: Place) -> None:
    with filled(sqlite_place) as old:
        with closing(sqlite3.connect(sqlite_place.path)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM record").fetchone()
            assert old.forget(users=["ann"]).certificate.erasure == "pending"
            with pytest.raises(
                VaultError, match=r"erasure is pending for 1 certificate .* run armnesia finish"
            ):
                Vault.create(
                    new_place.url,
                    keys=new_place.keys,
                    successor_of=sqlite_place.url,
                    successor_keys=sqlite_place.keys,
                    timeout=0.1,
                )
        succeed(sqlite_place, new_place).close()  # once nobody reads, it is completed on the way


def test_on_postgresql_erasures_are_completed_before(postgres_place: Place, new_place: Place) -> None:
    with filled(postgres_place) as old:
        old.forget(users=["ann"])
        with pytest.raises(VaultError, match="first run armnesia compact, then armnesia finish"):
            succeed(postgres_place, new_place, erasures_first=False)
        erased(old)
    with succeed(postgres_place, new_place) as vault:
        assert vault.ingest(LOG, user="who", id="id").suppressed == 2
        assert vault.verify().holds


def test_another_user_type_is_refused(place: Place, new_place: Place) -> None:
    with place.create(Configuration(actions=("A",), user_type=UserType.INTEGER)) as old:
        old.forget(users=["17"])
    for other in (UserType.TEXT, UserType.EXACT):
        with pytest.raises(VaultError, match=f"user_type must be integer, or not be given; got {other}"):
            succeed(place, new_place, Configuration(actions=("A",), user_type=other))
    succeed(place, new_place, Configuration(actions=("A",), user_type=UserType.INTEGER)).close()


@pytest.mark.filterwarnings("ignore:user column .* has white space around names")
def test_names_forgotten_before_a_type_was_fixed_are_not_compared_exactly(
    place: Place, new_place: Place, tmp_path: Path
) -> None:
    with place.create(Configuration(actions=("A",))) as old:
        old.forget(users=["ann"])
    with pytest.raises(VaultError, match="user_type must be integer or text, or not be given; got exact"):
        succeed(place, new_place, Configuration(actions=("A",), user_type=UserType.EXACT))
    for user_type in (None, UserType.TEXT):
        with succeed(
            place, fresh_place("sqlite", tmp_path), Configuration(actions=("A",), user_type=user_type)
        ) as vault:
            assert vault.ingest(_rows([" ann"]), user="who").suppressed == 1


def test_the_old_vault_names_its_successor_and_is_otherwise_as_it_was(place: Place, tmp_path: Path) -> None:
    new = fresh_place("postgresql" if place.url.startswith("postgresql") else "sqlite", tmp_path)
    with filled(place) as old:
        old.forget(users=["ann"])
        erased(old)
        before, head = dumped(old), old.head
        with succeed(place, new) as vault:
            first, made = vault.ledger()[0], vault.identity().vault
        after = dumped(old)
        assert {table for table, rows in after.items() if rows != before[table]} == {"vault", "ledger"}
        entry = old.ledger()[-1]
        assert entry.fields["previous"] == head.hash
        assert (entry.kind, entry.fields["successor"]) == ("succeeded", made)
        assert first.fields["predecessors"][-1]["head"] == str(old.head)
        assert old.configuration.successors == (made,)
        assert old.verify().problems == ()
        change(old, "UPDATE vault SET erased_through = 99")
    with place.open(accept="damaged") as old:
        old.rebuild()
        assert old.configuration.successors == (made,)
        assert old.verify().problems == ()


def test_changes_of_a_vault_that_was_succeeded_are_warned_of(place: Place, new_place: Place) -> None:
    filled(place).close()
    succeed(place, new_place).close()
    with place.open() as old:
        with pytest.warns(UserWarning, match="was succeeded by the vault .*: forget there as well"):
            done = old.forget(users=["ann"])
        with pytest.warns(UserWarning, match="forget there as well"):
            again = old.forget(users=["ann"])
        with pytest.warns(UserWarning, match="forget there as well"):
            (one_of_many,) = old.forget_many([ForgetRequest(users=["bob"])])
        assert isinstance(one_of_many, Forgotten)
        assert again.repeated
        for each in (done, again, one_of_many):
            assert each.to_dict()["successors"] == list(old.configuration.successors)
        with pytest.warns(UserWarning, match="was succeeded by the vault .*: rows that come in here do not"):
            old.ingest(LOG, user="who", id="id")
        assert len(old.configuration.successors) == 1
        succeed(place, fresh_place("sqlite", new_place.keys.parent)).close()
        assert len(set(old.configuration.successors)) == 2
        assert old.verify().problems == ()


def test_nobody_is_forgotten_in_the_old_vault_while_its_successor_is_made(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, tried = Keyring.save, []

    def forgets_meanwhile(self: Keyring, path: Path) -> None:
        with place.open(timeout=0.2) as other, pytest.raises(VaultBusyError):
            other.forget(users=["ann"])
        tried.append(path)
        save(self, path)

    filled(place).close()
    monkeypatch.setattr(Keyring, "save", forgets_meanwhile)
    succeed(place, fresh_place("sqlite", tmp_path)).close()
    assert len(tried) == 1


def test_the_old_vault_knows_its_successor_before_there_is_one(
    place: Place, new_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, seen = Keyring.save, []

    def looks_first(self: Keyring, path: Path) -> None:
        with place.open() as other:
            seen.append(other.ledger()[-1].fields.get("successor"))
        save(self, path)

    filled(place).close()
    monkeypatch.setattr(Keyring, "save", looks_first)
    with succeed(place, new_place) as vault:
        assert seen == [vault.identity().vault]


@pytest.mark.parametrize("window", ["before", "at its commit"])
def test_a_successor_that_fails_leaves_an_entry_and_no_file(
    place: Place, new_place: Place, monkeypatch: pytest.MonkeyPatch, window: str
) -> None:
    """The message says so, and does not say that nothing was changed."""

    def fails(*arguments: object, **options: object) -> None:
        raise VaultError("the vault cannot grow: the disk is full; nothing was changed")

    filled(place).close()
    with monkeypatch.context() as patch:
        if window == "before":
            patch.setattr(create, "_first_entry_of_successor", fails)
        else:
            patch.setattr(tables, "replace_table", fails)
        with pytest.raises(VaultError, match=r"disk is full; the ledger of the old vault has an entry for"):
            succeed(place, new_place)
    with place.open() as old:
        (named,) = old.configuration.successors
        assert (old.ledger()[-1].kind, old.ledger()[-1].fields["successor"]) == ("succeeded", named)
        assert old.verify().problems == ()
    assert not [path for path in new_place.path.parent.iterdir() if path.name.startswith(new_place.path.name)]
    with succeed(place, new_place) as vault, place.open() as old:
        assert old.configuration.successors == (named, vault.identity().vault)
        assert vault.verify().problems == ()


def test_whoever_is_forgotten_between_the_two_transactions_stays_out(
    place: Place, new_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list is read while the old vault is locked for the second time."""
    of, calls = Inheritance.of, []

    def counted(connection: VaultConnection, transaction: Transaction) -> Inheritance:
        calls.append(transaction.state.head.sequence)
        return of(connection, transaction)

    left = create._saying_what_is_left

    def forgets_meanwhile(vault: str) -> Any:
        with place.open() as other:
            with pytest.warns(UserWarning, match="was succeeded by"):
                other.forget(users=["ann"])
            erased(other)
        return left(vault)

    filled(place).close()
    monkeypatch.setattr(Inheritance, "of", counted)
    monkeypatch.setattr(create, "_saying_what_is_left", forgets_meanwhile)
    with succeed(place, new_place) as vault:
        assert vault.ingest(LOG, user="who", id="id").suppressed == 2
        assert len(calls) == 2
        assert calls[1] == calls[0] + 2


def test_a_successor_that_cannot_be_made_leaves_no_entry(place: Place, new_place: Place) -> None:
    with filled(place) as old:
        head = old.head
        new_place.keys.write_text("other keys")
        with pytest.raises(VaultError, match="there are keys at"):
            succeed(place, new_place)
        with pytest.raises(VaultError, match="there is already a "):
            succeed(place, Place(place.url, new_place.keys.with_suffix(".new")))
        assert (old.head, old.configuration.successors) == (head, ())
        assert old.verify().problems == ()


def test_the_first_entry_is_signed_with_the_old_key(sqlite_place: Place, new_place: Place) -> None:
    with filled(sqlite_place), succeed(sqlite_place, new_place) as vault:
        text = values(vault, "SELECT entry FROM ledger")[0][0]
    entry = json.loads(text)
    assert list(rotation_problems([entry])) == []
    wrong = "sequence 1: signed_by_predecessor is not a signature of that key"
    for changed in (
        {**entry, "public_key": Keyring.create("v-1").public_key()},
        {name: value for name, value in entry.items() if name != "signed_by_predecessor"},
    ):
        assert list(rotation_problems([changed])) == [wrong]
        other = Entry(changed)
        with pytest.raises(VaultError, match=wrong):
            LedgerCopy.of([(1, other.text, other.hash)])
    for lists in ([], "x", [{**entry["predecessors"][0], "version": 2}]):
        with pytest.raises(InvalidInputError, match="predecessors of entry 1"):
            list(rotation_problems([{**entry, "predecessors": lists}]))


def test_the_keys_of_the_old_vault_need_its_address(new_place: Place, sqlite_place: Place) -> None:
    filled(sqlite_place).close()
    with pytest.raises(InvalidInputError, match="successor_keys are the keys of another vault"):
        Vault.create(new_place.url, keys=new_place.keys, successor_keys=sqlite_place.keys)
    with pytest.raises(VaultError, match="there are keys at"):
        Vault.create(new_place.url, keys=sqlite_place.keys, successor_of=sqlite_place.url)
    assert not new_place.path.exists()


@pytest.mark.parametrize("seed", range(8))
def test_after_any_history_exactly_the_forgotten_stay_out(tmp_path: Path, seed: int) -> None:
    """Random forgets, readmissions, rotations, rebuilds and successions, against sets in plain Python."""
    random, people = np.random.default_rng(seed), [f"u{number}" for number in range(12)]
    log = pd.DataFrame({"action": "A", "reward": 1, "who": people * 3, "id": [f"r{n}" for n in range(36)]})
    out_users, out_records = set[str](), set[str]()
    place = fresh_place("sqlite", tmp_path)
    vault = filled_with(place.create(Configuration(actions=("A", "B"), user_type=UserType.TEXT)), log)
    for _ in range(14):
        user, record = str(random.choice(people)), f"r{random.integers(36)}"
        match random.choice(["user", "record", "readmit", "rotate", "succeed", "succeed and fill"]):
            case "user":
                vault.forget(users=[user])
                out_users.add(user)
            case "record":
                vault.forget(records=[record])
                out_records.add(record)
            case "readmit" if user in out_users:
                vault.readmit(users=[user], erase=bool(random.integers(2)))
                out_users.remove(user)
            case "rotate":
                vault.rotate_digest_key()
            case "succeed" | "succeed and fill" as kind:
                vault.close()
                old, place = place, fresh_place("sqlite", tmp_path)
                vault = succeed(old, place, Configuration(actions=("B", "A")))
                if kind == "succeed and fill":
                    filled_with(vault, log)
    with vault:
        filled_with(vault, log)
        stays = ~(log["who"].isin(out_users) | log["id"].isin(out_records))
        keyring = Keyring.read(place.keys)
        held = {identity for (identity,) in values(vault, "SELECT identity FROM record")}
        assert held == {keyring.record_identity("id", id_) for id_ in log.loc[stays, "id"]}
        assert vault.status().suppressed == len(out_users) + len(out_records)
        assert vault.verify().problems == ()


def filled_with(vault: Vault, log: pd.DataFrame) -> Vault:
    vault.ingest(log, user="who", id="id")
    return vault


@pytest.mark.parametrize("actions", [None, ("A", "B", "C"), ("A", "C")])
def test_arms_that_the_old_vault_retired_are_warned_of(
    sqlite_place: Place, tmp_path: Path, actions: tuple[str, ...] | None
) -> None:
    (tmp_path / "new").mkdir()
    new = fresh_place("sqlite", tmp_path / "new")
    with sqlite_place.create(Configuration(actions=("A", "B", "C", "D"))) as vault:
        vault.retire_arm("B")
        vault.retire_arm("C")
        vault.add_arm("C")  # offered again: nothing to warn of
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with succeed(sqlite_place, new, Configuration(actions=actions)) as vault:
            assert vault.configuration.arms == ()
    sentences = [str(each.message) for each in caught]
    if actions == ("A", "C"):
        assert sentences == []
    else:
        (sentence,) = sentences
        assert sentence.startswith(
            "not offered in the old vault, or in some of its decisions, but in the new"
        )
        assert "one: 'B'; armnesia arms retire" in sentence
