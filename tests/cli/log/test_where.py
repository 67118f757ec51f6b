"""The option --where of the commands on a log."""

from pathlib import Path
from typing import Any

import pytest

import armnesia as am

LOG = ("visits.csv", "--actions", "A,B")


@pytest.fixture
def visits(folder: Path) -> Path:
    path = folder / "visits.csv"
    rows = [
        f"{'AB'[row % 2]},{row % 3 % 2},u{row % 5},{'DE' if row % 4 else 'FR'},{row}" for row in range(60)
    ]
    path.write_text("\n".join(["action,reward,user,country,age", *rows, "Z,9,u1,IT,old"]) + "\n")
    return path


WHERE = ("--where", "country = DE", "--where", "age >= 10")


def test_the_commands_read_only_the_rows_that_satisfy_it(run: Any, visits: Path) -> None:
    log = am.read_log(visits, actions=["A", "B"], where=["country = DE", "age >= 10"])
    assert len(log) == 38
    found = run("decide", *LOG, *WHERE, "--json").json
    assert found["n_rows"] == 38
    assert [arm["count"] for arm in found["arms"]] == log.statistics().counts.tolist()
    assert run("decide", *LOG, *WHERE, "--by", "country", "--json").json["n_rows"] == 38
    forgotten = log.request(user="u1").counts.tolist()
    for command in (("unlearn",), ("audit",), ("compare", "--epsilon", "1", "--delta", "1e-5")):
        result = run(command[0], *LOG, *WHERE, "--user", "u1", *command[1:], "--json").json
        assert list(result["request"]["counts"].values()) == forgotten
    joint = run("unlearn", *LOG, *WHERE, "--user", "u1", "--by", "country", "--json").json
    assert joint["request"]["records"] == sum(forgotten)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("decide", *LOG, "--where", "planet = Mars"),
            "where column 'planet' is not in the source; it has '",
        ),
        (
            ("decide", *LOG, "--where", "country"),
            "where must be a condition such as country = DE, age >= 18, page in (home, cart) or ",
        ),
        (
            ("decide", *LOG, "--where", "age > 1"),
            "where column 'age' must hold numbers to be compared with 1",
        ),
        (("decide", *LOG, "--where", "country = XX"), "no row of the source satisfies country = 'XX'"),
        (
            ("unlearn", *LOG, *WHERE, "--rows", "3"),
            "rows are named by their position in the source, and this",
        ),
        (
            ("decide", "flights", "--where", "a = 1"),
            "the bundled log 'flights' has its own columns, actions ",
        ),
        (("decide", "--where", "a = 1"), "there is no vault at 'vault.db'; make one with"),
    ],
)
@pytest.mark.usefixtures("visits")
def test_what_is_refused(run: Any, arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"armnesia: {message}")
    assert done.err.count("\n") == 1
