"""The commands `calibrate` and `curve`."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.examples import BUDGET


def test_calibrate_gives_the_analytic_noise(run: Any) -> None:
    result = run("research", "calibrate", *BUDGET, "--json")
    assert result.code == 0
    assert result.json["gamma"] == pytest.approx(3.730631634816, rel=1e-9)
    assert set(result.json) == {"gamma", "epsilon", "delta", "method", "exact_delta"}
    assert "3.7306316" in run("research", "calibrate", *BUDGET).out


def test_classic_calibration_warns_above_one_and_is_refused_where_false(run: Any) -> None:
    warned = run("research", "calibrate", "--epsilon", "3", "--delta", "1e-5", "--classic", "--json")
    assert warned.code == 0
    assert warned.json["gamma"] == pytest.approx(1.6149350875)
    assert "proved for epsilon <= 1 only" in warned.err
    refused = run("research", "calibrate", "--epsilon", "12", "--delta", "1e-5", "--classic")
    assert refused.code == 2
    assert refused.err.count("\n") == 1
    assert "false at epsilon = 12" in refused.err


def test_curve_shows_both_directions(run: Any, tmp_path: Path) -> None:
    picture = tmp_path / "curve.svg"
    result = run(
        "research",
        "curve",
        "--gamma",
        "0.5",
        "--epsilon",
        "5",
        "--delta",
        "1e-5",
        "--picture",
        picture,
        "--json",
    )
    at_epsilon, at_delta = result.json["points"]
    assert at_epsilon["delta"] == pytest.approx(0.0323, abs=1e-4)
    assert at_delta["epsilon"] == pytest.approx(9.9973, abs=1e-3)
    assert "<svg" in picture.read_text()


def test_curve_without_noise_writes_infinity_as_text(run: Any) -> None:
    points = run("research", "curve", "--gamma", "0", "--delta", "1e-5", "--json").json["points"]
    assert points == [{"epsilon": "inf", "delta": 1e-5}]
