"""Where the parts of a simulation run does not change a bit of its results."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from armnesia.core.errors import InvalidInputError, MissingExtraError
from armnesia.privacy import Budget
from armnesia.simulation import (
    Cell,
    CellStore,
    Environment,
    Evaluation,
    FixedSample,
    SeveralArms,
    evaluate,
    run_cells,
)
from armnesia.simulation.parallel import backend_of_joblib, workers
from armnesia.unlearners import Gaussian
from tests.conftest import Outcome

ENVIRONMENT = Environment.bernoulli([0.5, 0.4, 0.3])


def evaluated(n_jobs: int = 1) -> Evaluation:
    return evaluate(
        ENVIRONMENT,
        FixedSample.round_robin(60, 3),
        SeveralArms({0: 5}),
        Gaussian(),
        Budget.from_gamma(0.5, delta=1e-5),
        protocol="sampled",
        datasets=30_000,
        seed=3,
        n_jobs=n_jobs,
    )


@pytest.fixture(scope="module")
def serial() -> Evaluation:
    return evaluated()


def assert_same(found: Evaluation, expected: Evaluation) -> None:
    assert (found.suboptimality, found.standard_error) == (expected.suboptimality, expected.standard_error)
    assert found.probabilities.tobytes() == expected.probabilities.tobytes()
    assert found.blocks.tobytes() == expected.blocks.tobytes()


@contextmanager
def cluster() -> Iterator[Any]:
    """A cluster of dask in this process: two workers, and a scheduler that they talk to."""
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with LocalCluster(**options) as made, Client(made) as client:
        yield client


def where_it_ran(_: int) -> str:
    from distributed import get_worker

    return str(get_worker().address)


@pytest.mark.parametrize("backend", [pytest.param("loky", marks=pytest.mark.slow), "threading"])
def test_a_backend_of_this_machine_gives_the_same_bits(backend: str, serial: Evaluation) -> None:
    with backend_of_joblib(backend):
        assert_same(evaluated(2), serial)


@pytest.mark.slow
def test_a_cluster_of_dask_gives_the_same_bits(serial: Evaluation, tmp_path: Path) -> None:
    cells = [
        Cell(
            environment=ENVIRONMENT,
            model=FixedSample.round_robin(n, 3),
            request=SeveralArms({0: 5}),
            unlearners={"gaussian": Gaussian()},
            budget=Budget.from_gamma(0.5, delta=1e-5),
            protocol="sampled",
            datasets=500,
        )
        for n in (100, 200, 300)
    ]
    expected = [row for cell in cells for row in cell.rows()]
    with cluster() as client, joblib.parallel_config("dask"):
        assert_same(evaluated(), serial)
        store = CellStore(tmp_path / "cells.jsonl")
        with workers(2) as those:
            assert run_cells(cells, store, those) == expected
        assert CellStore(store.path).finished == store.finished
        with workers(1) as those:
            ran = list(those.map(where_it_ran, range(20)))
        assert set(ran) <= set(client.scheduler_info()["workers"])
        with backend_of_joblib("dask"):  # the client that is there
            assert_same(evaluated(), serial)


def double(number: int) -> int:
    return 2 * number


@pytest.mark.parametrize(("backend", "n_jobs"), [(None, 1), ("threading", 1), ("threading", 2)])
def test_results_come_in_order_or_with_what_they_belong_to(backend: str | None, n_jobs: int) -> None:
    with backend_of_joblib(backend), workers(n_jobs) as those:
        assert list(those.map(double, range(50))) == list(range(0, 100, 2))
        assert sorted(those.finished(double, [3, 1, 2])) == [(1, 2), (2, 4), (3, 6)]


def nested(number: int) -> tuple[str, int]:
    with workers(4) as those:
        return type(those).__name__, sum(those.map(double, [number]))


def test_a_worker_does_not_hand_work_on() -> None:
    with joblib.parallel_config("threading", n_jobs=2), workers(2) as those:
        assert list(those.map(nested, [1, 2])) == [("_ThisProcess", 2), ("_ThisProcess", 4)]


@pytest.mark.slow
def test_processes_of_its_own_give_the_same_bits(serial: Evaluation) -> None:
    assert_same(evaluated(2), serial)


def test_an_unknown_backend_and_a_missing_joblib_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    message = "backend must be one of loky, threading, dask; got 'slurm'"
    with pytest.raises(InvalidInputError, match=message), backend_of_joblib("slurm"):
        pass
    monkeypatch.setitem(sys.modules, "joblib", None)
    message = r'A backend of joblib needs .* "armnesia\[parallel\]"'
    with pytest.raises(MissingExtraError, match=message), backend_of_joblib("loky"):
        pass


def test_the_command_line_takes_a_backend(run: Callable[..., Outcome]) -> None:
    command = [
        "research",
        "evaluate",
        "--unlearner",
        "gaussian",
        "--n",
        "60",
        "--deletions",
        "5",
        "--protocol",
        "sampled",
    ]
    command += ["--datasets", "2000", "--json"]
    serial, threads = run(*command), run(*command, "--backend", "threading", "--n-jobs", "2")
    assert (threads.code, threads.err) == (0, "")
    assert threads.json == serial.json
    assert np.isfinite(serial.json["suboptimality"])
    refused = run(*command, "--backend", "slurm")
    assert (refused.code, refused.out) == (2, "")
