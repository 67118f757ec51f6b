"""The command `readmit`."""

from pathlib import Path
from typing import Any

from tests.cli.examples import INGEST


def test_forgotten_people_stay_out_until_they_are_readmitted(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1")
    assert run(*INGEST, "--json").json["suppressed"] == 40
    readmitted = run("readmit", "--user", "u1", "--json").json
    assert set(readmitted) == {"readmitted", "erased", "head"}
    assert readmitted["readmitted"] == 1
    assert run(*INGEST, "--json").json["added"] == 40  # the old records: the file still has them


def test_it_says_that_old_records_come_in_if_a_source_has_them(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1")
    sentence = "their records are accepted from now on, old ones too if a source that has them is ingested"
    assert sentence in " ".join(run("readmit", "--user", "u1").out.split())


def test_erasing_says_what_it_means(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1")
    run("forget", "--user", "a1")
    assert "digests" not in run("readmit", "--user", "u1").out
    erased = run("readmit", "--user", "a1", "--erase").out
    assert "1 readmitted" in erased
    assert "Their digests are erased" in erased
    assert "brings their old records back" in erased
