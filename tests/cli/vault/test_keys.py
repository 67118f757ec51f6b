"""The commands `public-key` and `rotate-key`."""

from pathlib import Path
from typing import Any

from tests.cli.examples import INGEST


def test_new_keys_keep_what_was_signed_and_suppressed(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1", "--certificate", "u1.json")
    assert run("rotate-key", "signing", "--json").json["version"] == 2
    rotated = run("rotate-key", "digest", "--json").json
    assert set(rotated) == {"key", "version", "head"}
    assert "version 3" in run("rotate-key", "digest").out
    keys = run("public-key", "--json").json
    assert set(keys) == {"schema", "vault", "head", "version", "public_key", "public_keys", "keys"}
    assert (keys["version"], len(keys["public_keys"])) == (2, 2)
    Path("public").write_text(run("public-key").out)
    assert run("certificate", "verify", "u1.json", "--public-key", "public").code == 0
    assert run("certificate", "verify", "u1.json", "--public-key", keys["public_key"]).code == 1
    assert run(*INGEST, "--json").json["suppressed"] == 40
    assert run("verify").code == 0


def test_the_published_list_says_who_signed_what(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1", "--certificate", "u1.json")
    run("rotate-key", "signing")
    run("forget", "--user", "a1", "--certificate", "a1.json")
    printed = run("public-key", "--json")
    first, second = printed.json["keys"]
    assert (first["version"], first["first_entry"], first["last_entry"]) == (1, 1, 2)
    assert (second["version"], second["first_entry"], second["last_entry"]) == (2, 3, None)
    assert printed.json["head"] == run("ledger", "--head-only").out.strip()
    assert run("public-key").out.split() == printed.json["public_keys"]
    Path("keys.json").write_text(printed.out, encoding="utf-8")
    for name, notes in (("u1", 2), ("a1", 0)):
        checked = run("certificate", "verify", f"{name}.json", "--public-key", "keys.json", "--json")
        assert (checked.code, checked.json["valid"], len(checked.json["notes"])) == (0, True, notes)


def test_a_stolen_key_is_said_at_its_rotation(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1", "--certificate", "u1.json")
    run("forget", "--user", "a1", "--certificate", "a1.json")
    for wrong in ("0", "4"):
        refused = run("rotate-key", "signing", "--compromised-since", wrong)
        assert refused.code == 2
        assert "must be the number of a ledger entry, 1 to 3; got" in refused.err
    refused = run("rotate-key", "digest", "--compromised-since", "2")
    assert refused.code == 2
    assert "--compromised-since is for the signing key: a digest key signs nothing" in refused.err
    done = run("rotate-key", "signing", "--compromised-since", "3")
    assert "Certificates signed since entry 3 must be issued again" in done.out
    assert "certificates to issue again" in run("status").out
    assert run("status", "--json").json["to_reissue"] == 1
    verified = run("verify")
    assert verified.code == 0
    assert "1 certificate signed with a compromised key, of ledger entries 3:" in " ".join(
        verified.out.split()
    )
    Path("keys.json").write_text(run("public-key", "--json").out, encoding="utf-8")
    run("export", "export.json")
    against = ("--public-key", "keys.json", "--ledger", "export.json")
    assert run("certificate", "verify", "u1.json", *against).code == 0
    refused = run("certificate", "verify", "a1.json", *against, "--json")
    assert refused.code == 1
    assert refused.json["problems"] == [
        "key 1 was compromised: certificates that it signed since entry 3 must be issued again; ask the"
        " operator for it (armnesia certificate show)"
    ]
    run("certificate", "show", "--user", "a1", "--out", "again.json")
    assert run("certificate", "verify", "again.json", *against).code == 0
    assert run("status", "--json").json["to_reissue"] == 0
    assert "certificates to issue again" not in run("status").out
