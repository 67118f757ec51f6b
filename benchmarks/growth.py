"""Cost as logs grow and as deletions accumulate, for a vault whose rows stay in Parquet files.

    python benchmarks/growth.py [--most ROWS] [--forgets N] [--folder FOLDER] [--picture FILE]

For 10⁶ rows and each power of ten up to `--most` (10⁸ by default; 10⁹ rows need 4 GB of disk, because they
are ten names of the file of 10⁸ rows, and half an hour): the ingest into an external vault beside the bare
group-by of DuckDB, and the forgetting of one person beside the bare look-up, in a file of scattered rows and
in one that DuckDB has sorted by person. Each size runs in a process of its own, whose peak memory is
printed; the bare query runs before and after ours, and the ratio is to the mean of the two.

Then people are forgotten in a vault of 10⁶ rows, managed and external, until `--forgets` of its 50,000 are,
most of them by requests of 500: in between, 300 requests of one person each are timed. The time of a forget
must not depend on how many there were before. `--picture` draws all of it.
"""

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

from armnesia.vault import Configuration, Vault

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measuring import machine, run

MAKE = """
import duckdb, sys
rows, order, out = int(sys.argv[1]), sys.argv[2], sys.argv[3]
database = duckdb.connect()
database.execute("SET preserve_insertion_order = false")
database.execute("SET enable_progress_bar = false")
database.execute(f'''COPY (
    SELECT CAST(hash(i) % {max(rows // 20, 1)} AS BIGINT) AS user_id, 'arm-' || (hash(i + 7) % 100) AS action,
        CAST(hash(i + 13) % 1000003 AS DOUBLE) / 1000003 AS reward
    FROM range({rows}) t(i) {order}) TO '{out}' (FORMAT parquet)''')
"""
ARMS = tuple(f"arm-{arm}" for arm in range(100))
FILES_OF = {10**9: 10}
"""How many names of a smaller file stand for so many rows."""
SINGLE, TOGETHER = 300, 500
"""How many requests of one person are timed, and how many people are forgotten at once in between."""
COUNT = """
import json, sys
from benchmarks.growth import compare_counts
print(json.dumps(compare_counts(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
"""
GROUP_BY = (
    "SELECT action, count(*), sum(CAST(round_even(reward * 1000000000::DOUBLE, 0) AS BIGINT))"
    " FROM read_parquet(?) {} GROUP BY action"
)


def bare(folder: str, person: int | None = None) -> float:
    """Seconds of the bare group-by, or of the bare look-up of one person."""
    with duckdb.connect(config={"enable_external_file_cache": "false"}) as database:
        database.execute("SET enable_progress_bar = false")
        condition, parameters = ("", []) if person is None else ("WHERE user_id = ?", [person])
        start = time.perf_counter()
        database.execute(GROUP_BY.format(condition), [f"{folder}/*.parquet", *parameters]).fetchall()
        return time.perf_counter() - start


def compare_counts(folder: str, vault_path: str, people: int) -> dict[str, Any]:
    """Seconds of an ingest and of a forget, and of the bare queries around them; in this process."""
    measured: dict[str, Any] = {}
    person = people // 3
    url, keys = f"sqlite:///{vault_path}", f"{vault_path}.keys"
    with Vault.create(url, Configuration(actions=ARMS, mode="external"), keys=keys) as vault:
        before, start = bare(folder), time.perf_counter()
        rows = vault.ingest(f"{folder}/*.parquet", user="user_id").added
        seconds = time.perf_counter() - start
        measured["ingest"] = [seconds, (before + bare(folder)) / 2]
        ours, theirs = [], [bare(folder, person)]
        for number in range(3):
            start = time.perf_counter()
            assert vault.forget(users=[person + number]).held == 1
            ours.append(time.perf_counter() - start)
            theirs.append(bare(folder, person + number))
        measured["forget"] = [statistics.median(ours), statistics.median(theirs)]
    return {**measured, "rows": rows, "bytes": Path(vault_path).stat().st_size}


def folders(rows: int) -> dict[str, str]:
    """Make logs of so many rows: one scattered, one sorted by person."""
    names = FILES_OF.get(rows, 1)
    made = {}
    for order in ("scattered", "sorted"):
        folder = Path(f"{order}-{rows}")
        folder.mkdir()
        made[order] = str(folder)
        if names > 1:
            smaller = Path(f"{order}-{rows // names}") / "log.parquet"
            for number in range(names):
                os.link(smaller, folder / f"log-{number}.parquet")
        else:
            sorting = "ORDER BY user_id" if order == "sorted" else ""
            run(MAKE, str(rows), sorting, str(folder / "log.parquet"))
    return made


def measure_rows(most: int) -> list[dict[str, Any]]:
    """One line per number of rows and order."""
    print(f"\n{'rows':>13} {'order':>10} {'ingest':>9} {'bare':>9}     {'forget':>9} {'bare':>9}")
    found, rows = [], 10**6
    while rows <= most:
        for order, folder in folders(rows).items():
            people = rows // FILES_OF.get(rows, 1) // 20
            printed, memory = run(COUNT, folder, f"{order}-{rows}.db", str(people))
            each = {**json.loads(printed.splitlines()[-1]), "order": order, "memory": memory}
            assert each["rows"] == rows
            found.append(each)
            (ingest, group), (forget, look) = each["ingest"], each["forget"]
            print(
                f"{rows:13,} {order:>10} {ingest:7.2f} s {group:7.2f} s ×{ingest / group:4.2f}"
                f" {1e3 * forget:6.0f} ms {1e3 * look:6.0f} ms ×{forget / look:4.2f}"
                f"  vault {each['bytes'] / 1e6:.2f} MB, peak {memory:,.0f} MB",
                flush=True,
            )
        rows *= 10
    return found


def measure_deletions(forgets: int) -> dict[str, list[tuple[int, float, float]]]:
    """How many people are forgotten, mean milliseconds of forgetting one more, standard error; by mode."""
    found = {}
    for mode in ("managed", "external"):
        url = f"sqlite:///many-{mode}.db"
        with Vault.create(url, Configuration(actions=ARMS, mode=mode), keys=f"many-{mode}.keys") as vault:
            vault.ingest("sorted-1000000/*.parquet", user="user_id")
            # In an order that has nothing to do with the place of their rows; 7919 is coprime to 50,000.
            people = [number * 7919 % 50_000 for number in range(50_000)]
            found[mode] = [
                measure_at(vault, people, max(at, SINGLE)) for at in range(0, forgets + 1, forgets // 4)
            ]
        shown = ", ".join(f"{mean:.2f} ± {error:.2f} ({before:,})" for before, mean, error in found[mode])
        print(f"{mode}: ms of a forget (people forgotten before): {shown}", flush=True)
    return found


def measure_at(vault: Vault, people: list[int], before: int) -> tuple[int, float, float]:
    """Forget people until so many are, then time single requests."""
    forgotten = vault.status().suppressed
    for first in range(forgotten, before, TOGETHER):
        vault.forget(users=people[first : min(first + TOGETHER, before)])
    taken = []
    for person in people[before : before + SINGLE]:
        start = time.perf_counter()
        assert vault.forget(users=[person]).held == 1
        taken.append(1e3 * (time.perf_counter() - start))
    return before, statistics.fmean(taken), statistics.stdev(taken) / len(taken) ** 0.5


def draw(path: str, by_rows: list[dict[str, Any]], by_deletions: dict[str, list[Any]]) -> None:
    """Draw the three panels."""
    from matplotlib import pyplot  # noqa: PLC0415 (an extra)

    figure, panels = pyplot.subplots(1, 3, figsize=(13, 4), layout="constrained")
    for panel, what in zip(panels[:2], ("ingest", "forget"), strict=True):
        for order in ("scattered", "sorted"):
            own = [each for each in by_rows if each["order"] == order]
            rows = [each["rows"] for each in own]
            for side, name, style in ((0, "armnesia", "o-"), (1, "bare query", "x--")):
                panel.loglog(rows, [each[what][side] for each in own], style, label=f"{name}, {order}")
        panel.set(title=f"{what.capitalize()} as the log grows", xlabel="rows", ylabel="seconds")
        panel.legend(fontsize="small")
    for mode, measured in by_deletions.items():
        before, means, errors = zip(*measured, strict=True)
        panels[2].errorbar(before, means, errors, fmt="o-", capsize=3, label=f"armnesia, {mode}")
    panels[2].set(title="Forget as deletions accumulate", xlabel="people forgotten before", ylabel="ms")
    panels[2].set_ylim(bottom=0)
    panels[2].legend(fontsize="small")
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--most", type=int, default=10**8, help="the most rows of a log")
    parser.add_argument(
        "--forgets", type=int, default=40_000, help="how many people are forgotten at the end"
    )
    parser.add_argument("--folder", help="where to make the files; by default a temporary folder")
    parser.add_argument("--picture", help="a file for the picture, .svg or .png")
    given = parser.parse_args()
    picture = given.picture and os.path.abspath(given.picture)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.getcwd(), *sys.path]))
    print(machine())
    with (
        tempfile.TemporaryDirectory(prefix="armnesia-growth-", dir=given.folder) as folder,
        contextlib.chdir(folder),
    ):
        by_rows, by_deletions = measure_rows(given.most), measure_deletions(given.forgets)
        if picture:
            draw(picture, by_rows, by_deletions)


if __name__ == "__main__":
    main()
