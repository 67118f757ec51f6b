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
