"""The demo: the main job, end to end, on the bundled log."""

import json
from pathlib import Path

import pytest

from armnesia.cli.main import main


@pytest.fixture(scope="module")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    with pytest.raises(SystemExit) as stopped:
        main(["demo", "--out", str(folder)])
    assert stopped.value.code == 0
    return folder


def test_the_demo_writes_its_picture_and_numbers(demo_folder: Path) -> None:
    assert (demo_folder / "forgetting.png").read_bytes().startswith(b"\x89PNG")
    numbers = json.loads((demo_folder / "demo.json").read_text(encoding="utf-8"))
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


def test_the_demo_forgets_in_a_vault_and_checks_it(
    demo_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = json.loads((demo_folder / "demo.json").read_text(encoding="utf-8"))["vault"]
    assert (told["added"], told["forgotten"], told["left_out_when_sent_again"]) == (16026, 480, 480)
    assert (told["served_before"], told["served"]) == ("DL", "VX")
    assert (told["erasure"], told["certificate_problems"], told["holds"]) == ("complete", [], True)
    assert {path.name for path in demo_folder.iterdir()} == {
        "demo.json",
        "forgetting.png",
        "certificate.json",
    }
    with pytest.raises(SystemExit) as stopped:
        main(["certificate", "verify", told["certificate"]])
    assert stopped.value.code == 0
    assert "1 user: 'N711ZX'" in capsys.readouterr().out


def test_the_demo_tells_its_story(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["demo", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    for words in (
        "16,026 flights",
        "N711ZX",
        "VX 1.0000",
        "request_shape",
        "holds",
        "forgetting.png",
        "ingest flights",
        "Erasure",
    ):
        assert words in printed


def test_the_demo_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["demo", "--out", str(tmp_path), "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "demo.json").read_text(encoding="utf-8"))
