"""Bad input to the research commands: one sentence on stderr and exit code 2."""

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("evaluate",), "--n 3000"),
        (("evaluate", "--n", 100, "--model", "magic"), "fixed or distribution"),
        (("evaluate", "--n", 100, "--unlearner", "magic"), "must be one of"),
        (("evaluate", "--n", 100, "--means", "a,b"), "--means"),
        (("evaluate", "--n", 100, "--means", "2,0"), "[0, 1]"),
        (("evaluate", "--n", 100, "--arms", "0,1", "--deletions", "1,2,3"), "--deletions"),
        (("evaluate", "--n", 100, "--arm", "9"), "arm must be below"),
        (
            ("evaluate", "--n", 100, "--gamma", 1, "--epsilon", 1),
            "a budget is --epsilon with --delta, or --gamma",
        ),
        (("evaluate", "--n", 100, "--protocol", "guessed"), "protocol must be"),
        (
            ("evaluate", "--n", 100, "--unlearner", "tilt", "--predictive", "guess"),
            "predictive must be one of",
        ),
        (
            ("evaluate", "--n", 100, "--unlearner", "rollback", "--predictive", "flat"),
            "--predictive belongs to tilt; got it with rollback",
        ),
        (
            ("evaluate", "--n", 100, "--unlearner", "tilt", "--arms", "0,1,2", "--protocol", "exact"),
            "sampled protocol",
        ),
        (
            ("evaluate", "--n", 100, "--unlearner", "oracle", "--ratio", 1),
            "belongs to mixing; got it with oracle",
        ),
        (("evaluate", "--n", 100, "--seed", -1), "--seed"),
        (("reproduce", "--datasets", 0), "--datasets"),
        (("reproduce", "--n-jobs", 0), "--n-jobs"),
        (("evaluate", "--counts", "1,2"), "same arms"),
        (("bounds", "--n", 100, "--model", "magic"), "fixed or distribution"),
        (("bounds", "--n", 1000, "--form", "poetic"), "form must be"),
        (("bounds", "--n", 100, "--deletions", "1000"), "deletions"),
        (("reproduce", "--part", "7"), "part must be one of"),
        (("reproduce", "--part", "1", "--protocol", "dream"), "protocol must be one of"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(run: Any, arguments: tuple[object, ...], expected: str) -> None:
    result = run(*arguments)
    assert result.code == 2
    assert expected in result.err
    assert result.err.count("\n") == 1
