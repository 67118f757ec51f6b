"""The command `demo`: everything on the bundled log, without and with a vault."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from armnesia.cli.main import main
from tests.cli.documentation import assert_documented


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the command has written, with what it printed in the file `printed`."""
    folder = tmp_path_factory.mktemp("demo")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as stopped:
        main(["demo", "--out", str(folder / "out")])
    assert stopped.value.code == 0
    (folder / "printed").write_text(printed.getvalue(), encoding="utf-8")
    return folder


def test_the_demo_writes_its_picture_and_numbers(demo: Path) -> None:
    out = demo / "out"
    assert {path.name for path in out.iterdir()} == {"demo.json", "forgetting.png", "certificate.json"}
    assert (out / "forgetting.png").read_bytes().startswith(b"\x89PNG")
    numbers = json.loads((out / "demo.json").read_text(encoding="utf-8"))
    assert numbers["decision"]["action"] == "DL"
    names = [case["unlearner"] for case in numbers["single_source"]]
    assert names == ["rollback", "gaussian", "adaptive", "tilt"]
    assert all(case["request"]["counts"]["DL"] == 480 for case in numbers["single_source"])
    assert numbers["single_source"][0]["probabilities"]["VX"] == 1.0
    assert numbers["single_source"][3]["probabilities"]["DL"] > 0.95
    (wide,) = numbers["multi_source"]
    assert wide["unlearner"] == "multi_source"
    assert min(wide["request"]["counts"].values()) > 0
    assert all(case["holds"] for case in numbers["single_source"] + numbers["multi_source"])


def test_the_demo_forgets_in_a_vault_and_verifies_it(demo: Path, run: Any) -> None:
    vault = json.loads((demo / "out/demo.json").read_text(encoding="utf-8"))["vault"]
    assert (vault["added"], vault["forgotten"], vault["left_out_when_sent_again"]) == (16026, 480, 480)
    assert (vault["served_before"], vault["served"]) == ("DL", "VX")
    assert (vault["certificate_problems"], vault["holds"]) == ([], True)
    # The vault and its key are gone: the words say what the demo has verified itself.
    verified = run("certificate", "verify", vault["certificate"], "--public-key", "ab" * 32)
    assert verified.code == 1
    assert "N711ZX" in Path(vault["certificate"]).read_text(encoding="utf-8")


def test_the_demo_prints_each_step(demo: Path) -> None:
    printed = (demo / "printed").read_text(encoding="utf-8")
    for text in (
        "16,026 flights",
        "N711ZX",
        "VX 1.0000",
        "request_shape",
        "holds",
        "forgetting.png",
        "ingest flights",
        "certificate verify",
        "4. The same in a vault",
    ):
        assert text in printed


@pytest.mark.slow
def test_the_demo_as_json_replaces_the_files_of_an_earlier_one(run: Any, demo: Path) -> None:
    as_json = run("demo", "--out", demo / "out", "--json").json
    assert as_json == json.loads((demo / "out/demo.json").read_text(encoding="utf-8"))
    assert_documented("demo", "", as_json)
