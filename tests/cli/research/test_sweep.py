"""The command `research sweep`: the library's rows, files, a picture, and refusals of bad lists."""

from pathlib import Path
from typing import Any

import armnesia as am


def test_a_sweep_has_the_rows_of_the_library_and_goes_on(run: Any, tmp_path: Path) -> None:
    options: tuple[str, ...] = (
        "research",
        "sweep",
        "--unlearner",
        "oracle,frozen_rollback",
        "--means",
        "0.5,0.4",
        "--n",
        "50,60",
    )
    options += ("--deletions", "2,5", "--epsilon", "1,3", "--learner", "lcb,kl_lcb", "--n-jobs", "1")
    files = ("--out", str(tmp_path / "out"), "--picture", str(tmp_path / "sweep.pdf"))
    found = run(*options, *files, "--json").json
    direct = am.sweep(
        *(["oracle", "frozen_rollback"], [0.5, 0.4]),
        n=[50, 60],
        k=[2, 5],
        epsilon=[1.0, 3.0],
        learner=["lcb", "kl_lcb"],
        n_jobs=1,
    )
    assert found["rows"] == direct.to_dict()["rows"]
    assert (tmp_path / "sweep.pdf").read_bytes().startswith(b"%PDF")
    assert len((tmp_path / "out" / "sweep.csv").read_text(encoding="utf-8").splitlines()) == 1 + 2**5
    kept = (tmp_path / "out" / "cells.jsonl").read_bytes()
    run(*options, *files)
    assert (tmp_path / "out" / "cells.jsonl").read_bytes() == kept  # nothing was computed twice


def test_a_learner_of_my_own_and_an_accuracy(run: Any) -> None:
    options = ("--unlearner", "rollback,gaussian", "--means", "0.5,0.4", "--n", "40", "--deletions", "25")
    own = ("--learner", "armnesia.learners:KLLCB", "--accuracy", "0.1", "--n-jobs", "1")
    shown = run("research", "sweep", *options, *own).out
    assert "not possible here" in " ".join(shown.split())
    assert run("research", "sweep", *options, "--accuracy", "2", "--n-jobs", "1").code == 2


def test_bad_lists_get_a_sentence(run: Any) -> None:
    bad = {"--n": "many", "--arms": "0+7", "--model": "mixed", "--unlearner": "amnesia", "--epsilon": "one"}
    for option, value in bad.items():
        given = {"--n": "50", option: value}
        refused = run("research", "sweep", *(part for pair in given.items() for part in pair), "--n-jobs", 1)
        assert (refused.code, refused.out) == (2, "")
        assert value.split("+")[-1] in refused.err
