"""Values that armnesia does not write, in every table, and every operation on a vault that has them."""

from collections.abc import Callable
from pathlib import Path

from armnesia.vault import Vault
from tests.databases import Place
from tests.vault.raw_vaults import LOG, filled

CHANGES = {
    "opening blank": "UPDATE request SET opening = '   '",
    "opening of another type": "UPDATE request SET opening = x'00'",
    "opening at another place": "UPDATE request SET opening = replace(opening, ' 0', ' 99999')",
    "no tree": "DELETE FROM tree",
    "tree of one byte": "UPDATE tree SET leaves = x'00'",
    "suppressed digests of text": "UPDATE suppressed SET digest = 'abc' || rowid",
    "suppressed kind": "UPDATE suppressed SET kind = 'xyz'",
    "suppressed since text": "UPDATE suppressed SET since = 'x'",
    "answered by text": "UPDATE request SET sequence = 'x'",
    "answered by an entry that does not exist": "UPDATE request SET sequence = 9",
    "answered by bytes": "UPDATE request SET sequence = x'03'",
    "certificates under text": "UPDATE certificate SET sequence = 'x' || sequence",
    "certificates of bytes": "UPDATE certificate SET body = x'00'",
    "entry of bytes": "UPDATE ledger SET entry = x'ff' WHERE sequence = 2",
    "entry of a number": "UPDATE ledger SET entry = 5 WHERE sequence = 1",
    "entry under text": "UPDATE ledger SET sequence = 'x' WHERE sequence = 2",
    "owners of text": "UPDATE record SET owner = 'abc'",
    "identities of text": "UPDATE record SET identity = 'abc' || rowid",
    "units of text": "UPDATE record SET units = 'abc'",
    "an arm that does not exist": "UPDATE record SET arm = 77",
    "tally digests of text": "UPDATE owner SET digest = 'abc'",
    "tally numbers of text": "UPDATE owner SET records = 'abc'",
    "served": "UPDATE decision SET served = 99",
    "table digests": "UPDATE vault SET tallies = 'zz'",
    "length of text": "UPDATE vault SET ledger_length = 'x'",
    "version of text": "UPDATE vault SET schema_version = 'x'",
    "version of bytes": "UPDATE vault SET schema_version = x'01'",
    "digest key of text": "UPDATE vault SET digest_key = 'x'",
    "seal of text": "UPDATE vault SET seal = 'x'",
    "configuration that is a list": "UPDATE vault SET configuration = '[]'",
    "mode that is a list": """UPDATE vault SET configuration = '{"mode": []}'""",
    "id of bytes": "UPDATE vault SET id = x'00'",
    "key": "UPDATE decision SET key = 'x'",
    "statistics that are no JSON": "UPDATE decision SET statistics = 'x'",
    "statistics of bytes": "UPDATE decision SET statistics = x'00'",
    "statistics of an unknown kind": """UPDATE decision SET statistics = '{"kind":"gram"}'""",
    "count of text": """UPDATE decision SET statistics = replace(statistics, 'counts":[', 'counts":["x",')""",
    "number of text": "UPDATE decision SET number = 7",
    "no decision": "DELETE FROM decision",
    "two decisions": "INSERT INTO decision SELECT 2, '[2]', statistics, 0, 'learner', seal FROM decision",
    "seal on the key": "UPDATE decision SET seal = 'x'",
    "number of decisions": "UPDATE vault SET decisions = 'x'",
    "no vault": "DELETE FROM vault",
    "no ledger": "DELETE FROM ledger",
}
"""What is changed, by SQL that SQLite accepts."""

SOURCE_CHANGES = {
    "no JSON": "UPDATE source SET description = '{'",
    "an empty object": "UPDATE source SET description = '{}'",
    "a list": "UPDATE source SET description = '[]'",
    "half of it": """UPDATE source SET description = '{"kind": "file"}'""",
    "bytes": "UPDATE source SET description = x'7b'",
}


def make_vault(place: Place, folder: Path) -> None:
    """A vault with requests of every kind, and its export for restoring in the folder."""
    with filled(place) as vault:
        vault.forget(users=["ann", "bob", "zoe"])
        vault.forget(users=["cem"])
        vault.forget(records=["r6"])
        vault.export(folder / "restore.json", for_restore=True)


def operations(place: Place, folder: Path) -> dict[str, Callable[[], object]]:
    """Every operation of a vault; `folder` has its exports."""

    def on_vault(work: Callable[[Vault], object], **options: object) -> Callable[[], object]:
        def opened() -> object:
            with Vault.open(place.url, keys=place.keys, **options) as vault:  # type: ignore[arg-type]
                return work(vault)

        return opened

    latest = folder / "restore.json"
    return {
        "certificate": on_vault(lambda vault: vault.certificate(users=["ann"])),
        "certificates": on_vault(lambda vault: list(vault.certificates(users=["ann", "cem", "dan"]))),
        "forget": on_vault(lambda vault: vault.forget(users=["dan"])),
        "forget again": on_vault(lambda vault: vault.forget(users=["cem"])),
        "forget a record": on_vault(lambda vault: vault.forget(records=["r5"])),
        "preview": on_vault(lambda vault: vault.preview(users=["dan"])),
        "ingest": on_vault(lambda vault: vault.ingest(LOG, user="who", id="id")),
        "status": on_vault(lambda vault: vault.status(scores=True)),
        "readmit": on_vault(lambda vault: vault.readmit(users=["cem"])),
        "finish": on_vault(lambda vault: vault.finish()),
        "export": on_vault(lambda vault: vault.export(folder / "new.json", for_restore=True)),
        "rotate the digest key": on_vault(lambda vault: vault.rotate_digest_key()),
        "rotate the signing key": on_vault(lambda vault: vault.rotate_signing_key(compromised_since=1)),
        "rebuild": on_vault(lambda vault: vault.rebuild(), accept="damaged"),
        "restore": lambda: Vault.restore(place.url, latest, keys=place.keys),
        "restore as it is": lambda: Vault.restore(place.url, latest, keys=place.keys, as_it_is=True),
        "ledger": on_vault(lambda vault: list(vault.ledger())),
        "check the ledger": on_vault(lambda vault: vault.check_ledger("1:" + "ab" * 32), accept="any"),
        "public keys": on_vault(lambda vault: vault.public_keys()),
        "decide": on_vault(lambda vault: vault.decide()),
        "compact": on_vault(lambda vault: vault.compact()),
    }
