"""Sweeps: the product of all settings, tidy rows, and cells that are kept as they finish."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import stats

import armnesia as am
from armnesia.core.arrays import FloatArray
from armnesia.core.errors import InvalidInputError
from armnesia.learners import Learner, PenaltyLearner
from armnesia.simulation import (
    AcrossArms,
    Cell,
    CellStore,
    DistributionModel,
    Environment,
    FixedSample,
    FrozenDistribution,
    OneArm,
    Row,
    evaluate,
    run_cells,
)
from armnesia.simulation.parallel import workers

MEANS = [0.5, 0.4, 0.3]
CELL = Cell(
    environment=Environment.bernoulli(MEANS),
    model=FixedSample.round_robin(60, 3),
    request=OneArm(0, 5),
    unlearners={"oracle": None, "rollback": am.Rollback()},
    budget=am.Budget(epsilon=1.0, delta=1e-5),
    labels={"figure": "test"},
)
CELLS = [
    CELL,
    replace(CELL, model=FixedSample.round_robin(70, 3)),
    replace(CELL, protocol="sampled", datasets=200),
    replace(CELL, model=DistributionModel(60, (0.5, 0.3, 0.2)), request=AcrossArms(5), datasets=200),
]


def run(cells: list[Cell], path: Path | None = None, n_jobs: int = 1, **options: Any) -> list[Row]:
    with workers(n_jobs) as those:
        return run_cells(cells, None if path is None else CellStore(path), those, **options)


def counting(monkeypatch: pytest.MonkeyPatch, stop_after: int | None = None) -> list[Cell]:
    """Record which cells are evaluated; interrupt the run at one of them."""
    evaluated: list[Cell] = []
    rows = Cell.rows

    def counted(cell: Cell) -> list[Row]:
        if len(evaluated) == stop_after:
            raise KeyboardInterrupt
        evaluated.append(cell)
        return rows(cell)

    monkeypatch.setattr(Cell, "rows", counted)
    return evaluated


@pytest.mark.slow
def test_every_value_of_every_list_is_combined_and_each_row_says_its_setting() -> None:
    found = am.sweep(
        {"none": None, "tilt": am.Tilt()},
        {"three": MEANS, "two": Environment.bernoulli([0.6, 0.5])},
        n=[30, 60],
        k=[2, 5],
        arms=[0, (0, 1)],
        epsilon=np.array([1.0, 3.0]),
        delta=[1e-5, 1e-3],
        n_jobs=1,
    )
    assert len(found.rows) == 2**7
    row = next(
        r for r in found.rows if (r["environment"], r["n"], r["arms"], r["k"]) == ("three", 60, "0 1", 5)
    )
    expected = {"model": "fixed", "c_star": None, "epsilon": 1.0, "delta": 1e-5, "method": "none"}
    assert {name: row[name] for name in expected} == expected
    assert (row["learner"], row["confidence"], row["protocol"]) == ("lcb", 1 / 60, "exact")


def test_the_values_are_those_of_evaluate_for_another_learner_and_model_too() -> None:
    budget = am.Budget(epsilon=1.0, delta=1e-5)
    found = am.sweep(
        ["rollback"], MEANS, n=60, k=5, epsilon=1, learner=["lcb", "kl_lcb"], model=["fixed", "distribution"],
        c_star=2.0, confidence=0.1, protocol="sampled", datasets=300, seed=7, n_jobs=1,
    )  # fmt: skip
    assert [(r["model"], r["learner"], r["confidence"]) for r in found.rows] == [
        (model, learner, 0.1) for model in ("fixed", "distribution") for learner in ("lcb", "kl_lcb")
    ]
    model = DistributionModel.with_coverage(60, n_actions=3, best=0, c_star=2.0)
    cell = CELL.environment, model, OneArm(0, 5), am.Rollback(), budget
    single = evaluate(*cell, learner="kl_lcb", confidence=0.1, protocol="sampled", datasets=300, seed=7)
    assert found.rows[-1]["suboptimality"] == single.suboptimality
    assert found.rows[-1]["standard_error"] == single.standard_error > 0


def test_what_is_not_possible_is_a_row_that_says_why() -> None:
    """A confidence is for the learners that have one; a request of too many records empties the arm."""
    found = am.sweep(
        ["oracle", "gaussian"], [0.5, 0.4], n=20, k=[2, 11], epsilon=1, learner=["lcb", "kl_lcb", "greedy"],
        confidence=[0.1, 0.2], n_jobs=1,
    )  # fmt: skip
    assert len(found.rows) == 2 * 2 * (2 + 2 + 1)
    for row in found.rows:
        assert (row["confidence"] is None) == (row["learner"] == "greedy")
        refused = (row["method"], row["learner"]) == ("gaussian", "kl_lcb")
        assert (row["suboptimality"] is None) == refused
        expected = "not possible here: gaussian needs" if refused else "an arm has fewer" * (row["k"] > 10)
        assert row["note"][: len(expected) or None] == expected
    assert found.to_polars().to_dicts() == found.to_dict()["rows"]
    (alone,) = am.sweep("oracle", [0.5, 0.4], n=20, k=2, learner="kl_lcb", confidence=0.1, n_jobs=1).rows
    (shared,) = (
        row
        for row in found.rows
        if all(row[name] == alone[name] for name in ("method", "k", "learner", "confidence"))
    )
    assert shared["suboptimality"] == alone["suboptimality"]  # and without a budget, which it does not need


def test_noise_instead_of_epsilon_and_a_setting_that_is_no_other() -> None:
    found = am.sweep("gaussian", MEANS, n=60, k=5, gamma=0.5, c_star=[2, 3], n_jobs=1)
    (row,) = found.rows  # C* is no part of the fixed model
    assert row["gamma"] == 0.5
    assert row["epsilon"] == pytest.approx(9.997, abs=1e-3)


def test_a_table_is_written_in_every_form(tmp_path: Path) -> None:
    found = am.sweep(["oracle", "tilt"], MEANS, n=[30, 60], k=5, epsilon=1, n_jobs=1)
    rows = found.to_dict()["rows"]
    assert json.loads(json.dumps(rows)) == rows
    assert found.to_polars().to_dicts() == rows
    assert found.to_pandas()["suboptimality"].tolist() == [row["suboptimality"] for row in rows]
    found.write_csv(tmp_path / "sweep.csv")
    with (tmp_path / "sweep.csv").open(encoding="utf-8") as file:
        assert [float(row["suboptimality"]) for row in csv.DictReader(file)] == [
            row["suboptimality"] for row in rows
        ]


def test_a_picture_has_a_curve_for_each_method_and_a_panel_for_each_other_setting() -> None:
    found = am.sweep(["oracle", "rollback"], MEANS, n=[30, 60, 90], k=[2, 5], epsilon=1, n_jobs=1)
    figure = found.plot()
    assert [axis.get_title(loc="left").replace("\xa0", " ") for axis in figure.axes] == ["k = 2", "k = 5"]
    for axis, k in zip(figure.axes, (2, 5), strict=True):
        for line in axis.get_lines():
            shown = [r for r in found.rows if (r["k"], r["method"]) == (k, line.get_label())]
            assert list(map(float, np.asarray(line.get_ydata()))) == [row["suboptimality"] for row in shown]
    assert len(found.plot("k").axes) == 3
    with pytest.raises(InvalidInputError, match=r"x must be one of n, k, .*; got 'colour'"):
        found.plot("colour")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": None}, "either epsilon or gamma"),
        ({"gamma": 0.5}, "either epsilon or gamma"),
        ({"model": "mixed"}, "model must be 'fixed' or 'distribution'; got 'mixed'"),
        ({"unlearners": "amnesia"}, "unlearner must be oracle, rollback.*; got 'amnesia'"),
        ({"unlearners": [am.Tilt(), am.Tilt(insurance=0)]}, "unlearners of one name need labels"),
        ({"unlearners": {1: am.Tilt(), "1": None}}, "'1' twice"),
        ({"environments": [[0.5000001, 0.4], [0.5, 0.4]]}, "environments of one name need labels"),
        ({"unlearners": [3.5]}, "must be names, Unlearners or None; got 3.5"),
        ({"arms": 3}, "arms must be from 0 to 2"),
        ({"n": []}, "must not be empty"),
        ({"learner": "guess"}, "learner must be one of"),
        ({"k": 2.5}, "whole numbers"),
    ],
)
def test_bad_input_gets_a_sentence(changes: dict[str, Any], message: str) -> None:
    arguments = {
        "unlearners": "tilt",
        "environments": MEANS,
        "n": 30,
        "k": 2,
        "epsilon": 1,
        "n_jobs": 1,
        **changes,
    }
    with pytest.raises(InvalidInputError, match=message):
        am.sweep(**arguments)


def test_an_interrupted_sweep_keeps_what_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "some" / "where" / "cells.jsonl"
    before = counting(monkeypatch, stop_after=2)
    with pytest.raises(KeyboardInterrupt):
        run(CELLS, path)
    assert before == CELLS[:2]
    monkeypatch.undo()
    after = counting(monkeypatch)
    rows = run(CELLS, path)
    assert after == CELLS[2:]
    assert rows == run(CELLS)  # as if nothing had happened
    assert len({tuple(row) for row in rows}) == 1  # the same columns, in the same order
    for row in rows:
        assert np.mean(row["blocks"]) == pytest.approx(row["suboptimality"], rel=1e-12)


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_torn_last_line_is_a_cell_not_finished_and_harms_no_other(
    cut: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cells.jsonl"
    run(CELLS[:3], path)
    path.write_text(path.read_text(encoding="utf-8")[:-cut], encoding="utf-8")
    assert set(CellStore(path).finished) == {cell.key for cell in CELLS[:2]}
    evaluated = counting(monkeypatch)
    run(CELLS[:3], path)
    assert evaluated == [CELLS[2]]
    assert set(CellStore(path).finished) == {cell.key for cell in CELLS[:3]}


@pytest.mark.parametrize(
    "change",
    [
        {"environment": Environment.beta([(1, 1), (2, 3), (1, 3)])},
        {"model": FixedSample((20, 20, 21))},
        {"request": OneArm(1, 5)},
        {"unlearners": {"oracle": None, "rollback": am.FrozenRollback()}},
        {"budget": am.Budget(epsilon=1.0, delta=1e-6)},
        {"learner": am.KLLCB()},
        {"confidence": 0.2},
        {"protocol": "sampled"},
        {"datasets": 500},
        {"seed": 1},
        {"labels": {"figure": "other"}},
        {"learner": am.LCB(confidence=0.5).with_frozen_penalty(np.arange(2000))},
        {"evaluate": evaluate},
    ],
)
def test_a_changed_setting_is_another_cell(change: dict[str, Any]) -> None:
    assert replace(CELL, **change).key != CELL.key == replace(CELL).key


class PenaltyOf(PenaltyLearner):
    """A learner of somebody else."""

    name = "penalty"
    factor: ClassVar[float] = 0.0

    def penalty(self, counts: ArrayLike, n_actions: int) -> FloatArray:
        """A multiple of 1/√N."""
        return np.asarray(self.factor / np.sqrt(np.asarray(counts)))


def penalty_of(factor: float) -> Learner:
    """Learners of one name and one repr, in classes of their own."""
    kind: type[PenaltyOf] = type("Mine", (PenaltyOf,), {"factor": factor})
    return kind()


def histogram(weights: list[float]) -> FrozenDistribution:
    """Every such distribution has the same repr."""
    return FrozenDistribution(stats.rv_histogram((np.array(weights), np.array([0, 0.5, 1])))())


@pytest.mark.parametrize(
    "change",
    [
        {"learner": penalty_of(0.0)},
        {"learner": PenaltyOf()},
        {"unlearners": {"own": am.Tilt(predictive=lambda *_: np.ones(3) / 3)}},
        {"environment": Environment((histogram([1, 2]), histogram([2, 1]), histogram([1, 1])))},
        {"environment": Environment((FrozenDistribution(stats.beta(1, 2)),) * 3)},
        {"evaluate": lambda *_, **__: {}},
    ],
)
def test_what_may_change_unseen_is_not_kept(change: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="only settings made of armnesia's own"):
        run([replace(CELL, **change)], tmp_path / "cells.jsonl")
    assert not (tmp_path / "cells.jsonl").exists()


def test_settings_that_look_the_same_are_evaluated_each() -> None:
    found = am.sweep(
        "rollback", [0.5, 0.4], n=41, k=5, epsilon=1, learner=[penalty_of(0.0), penalty_of(5.0)], n_jobs=1
    )
    assert len({row["suboptimality"] for row in found.rows}) == 2
    mirrored = (histogram([1, 2]), histogram([2, 1]))
    found = am.sweep(
        "rollback", {"one": Environment(mirrored), "other": Environment(mirrored[::-1])}, n=41, k=5,
        epsilon=1, datasets=200, n_jobs=1,
    )  # fmt: skip
    assert len({row["suboptimality"] for row in found.rows}) == 2


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_come_in_order_and_progress_counts_what_is_to_do(n_jobs: int) -> None:
    seen: list[tuple[int, int]] = []
    order = [CELLS[2], CELLS[0], CELLS[3]]
    rows = run(order, n_jobs=n_jobs, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert rows == [row for cell in order for row in cell.rows()]
