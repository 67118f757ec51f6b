"""Run all attacks and print a table of verdicts; the exit code is 1 if anything was missed."""

import argparse
import sys
from itertools import islice

from tests.red_team import copied_pages, crashes, decision_rows, flips, retired_keys, spellings, tampering
from tests.red_team.attacks import Attack, Score, table

ATTACKS: dict[str, tuple[Attack, int]] = {
    "bit flips in pages": (flips.pages, 2000),
    "bit flips in indexes, then an ingest": (flips.indexes, 400),
    "pages in the place of others": (copied_pages.copied_pages, 600),
    "bit flips in keys": (flips.keys, 300),
    "bit flips in the pin": (flips.pin, 300),
    "bit flips in a certificate": (flips.certificates, 1000),
    "certificates of a retired key": (retired_keys.retired_keys, 1000),
    "changes of rows": (tampering.rows, 300),
    "values of other types": (tampering.values, 800),
    "changes of the schema": (tampering.schema, 15),
    "changes under an open vault": (tampering.schema_of_an_open_vault, 30),
    "rows of yesterday": (tampering.replays, 60),
    "decisions of yesterday": (decision_rows.decision_rows, 120),
    "other spellings": (spellings.spellings, 230),
    "kills at a system call": (crashes.kills, 150),
    "errors of the disk": (crashes.disk_faults, 80),
}
"""Every attack, and how many trials the long run makes."""


def run(name: str, trials: int, seed: int, *, shown: bool = False) -> Score:
    """Run one attack."""
    attack, _ = ATTACKS[name]
    score = Score(name)
    for number, trial in enumerate(islice(attack(trials, seed), None), 1):
        score.add(trial)
        if shown and number % 50 == 0:
            print(f"{name}: {number} of {trials}", file=sys.stderr)
    return score


def main() -> int:
    """Run the attacks that the arguments choose."""
    parser = argparse.ArgumentParser(prog="python -m tests.red_team", description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the usual number of trials")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=ATTACKS, help="one attack")
    arguments = parser.parse_args()
    chosen = [name for name in ATTACKS if arguments.only in (None, name)]
    scores = [
        run(name, max(1, round(ATTACKS[name][1] * arguments.share)), arguments.seed, shown=True)
        for name in chosen
    ]
    print(table(scores))
    return 1 if any(score.missed for score in scores) else 0


if __name__ == "__main__":
    sys.exit(main())
