"""Bad input to the research commands: one sentence on stderr and exit code 2."""

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            (
                "research",
                "evaluate",
            ),
            "--n 3000",
        ),
        (("research", "evaluate", "--n", 100, "--model", "magic"), "fixed or distribution"),
        (("research", "evaluate", "--n", 100, "--unlearner", "magic"), "must be one of"),
        (("research", "evaluate", "--n", 100, "--means", "a,b"), "--means"),
        (("research", "evaluate", "--n", 100, "--means", "2,0"), "[0, 1]"),
        (("research", "evaluate", "--n", 100, "--arms", "0,1", "--deletions", "1,2,3"), "--deletions"),
        (("research", "evaluate", "--n", 100, "--arms", "9"), "arm must be below"),
        (
            ("research", "evaluate", "--n", 100, "--gamma", 1, "--epsilon", 1),
            "a budget is --epsilon with --delta, or --gamma",
        ),
        (("research", "evaluate", "--n", 100, "--protocol", "guessed"), "protocol must be"),
        (
            ("research", "evaluate", "--n", 100, "--unlearner", "tilt", "--predictive", "guess"),
            "predictive must be one of",
        ),
        (
            ("research", "evaluate", "--n", 100, "--unlearner", "rollback", "--predictive", "flat"),
            "--predictive belongs to tilt; got it with rollback",
        ),
        (
            (
                "research",
                "evaluate",
                "--n",
                100,
                "--unlearner",
                "tilt",
                "--arms",
                "0,1,2",
                "--protocol",
                "exact",
            ),
            "sampled protocol",
        ),
        (
            ("research", "evaluate", "--n", 100, "--unlearner", "oracle", "--ratio", 1),
            "belongs to mixing; got it with oracle",
        ),
        (("research", "evaluate", "--n", 100, "--seed", -1), "--seed"),
        (("research", "reproduce", "--datasets", 0), "--datasets"),
        (("research", "reproduce", "--n-jobs", 0), "--n-jobs"),
        (("research", "evaluate", "--counts", "1,2"), "same arms"),
        (("research", "bounds", "--n", 100, "--model", "magic"), "fixed or distribution"),
        (("research", "bounds", "--n", 1000, "--form", "poetic"), "form must be"),
        (("research", "bounds", "--n", 100, "--deletions", "1000"), "deletions"),
        (("research", "reproduce", "--part", "7"), "part must be one of"),
        (("research", "reproduce", "--part", "1", "--protocol", "dream"), "protocol must be one of"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(run: Any, arguments: tuple[object, ...], expected: str) -> None:
    result = run(*arguments)
    assert result.code == 2
    assert expected in result.err
    assert result.err.count("\n") == 1
