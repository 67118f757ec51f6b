"""The bundled flights are what they are said to be, and can be made again from their source."""

import gzip
import runpy
from pathlib import Path

import pytest

from armnesia.datasets import flights, flights_by_airline, flights_path
from armnesia.logs import read_log

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_flights.py"


def test_the_log_has_the_flights_to_los_angeles() -> None:
    log = flights()
    assert len(log) == 16_026
    assert log.actions == ("AA", "B6", "DL", "UA", "VX")
    assert log.reward_range == (0.0, 1.0)
    assert log.request(rows=range(1, len(log) + 1)).binary
    assert sum(log.users().values()) == len(log)  # every flight has its aircraft


def test_the_busiest_aircraft_of_delta() -> None:
    log = flights()
    busiest = list(log.users("DL"))[:4]
    assert busiest == ["N711ZX", "N718TW", "N722TW", "N705TW"]
    request = log.request(users=busiest)
    assert (int(request.counts.sum()), int(request.n_sources)) == (480, 1)


def test_the_file_reads_as_any_other_file() -> None:
    airlines = ["AA", "B6", "DL", "UA", "VX"]
    in_file = read_log(flights_path(), action="airline", reward="on_time", user="aircraft", actions=airlines)
    assert in_file.statistics() == flights().statistics()
    assert list(in_file.users().items()) == list(flights().users().items())
    assert in_file.request(user="N705TW") == flights().request(user="N705TW")


def test_the_airlines_of_the_whole_year() -> None:
    statistics = flights_by_airline()
    assert (statistics.n_actions, int(statistics.total)) == (16, 327_346)
    hawaiian = statistics.index_of("HA")
    assert int(statistics.unit_means.argmax()) == hawaiian
    assert (int(statistics.counts[hawaiian]), round(float(statistics.means[hawaiian]), 3)) == (342, 0.874)


def test_the_files_are_small() -> None:
    assert flights_path().stat().st_size < 200_000


@pytest.mark.slow
def test_the_script_makes_the_same_files_again() -> None:
    make = runpy.run_path(str(SCRIPT))
    try:
        source = make["flights_csv_zip"]()
    except ModuleNotFoundError as error:
        pytest.skip(str(error))
    made = make["make_files"](source)
    assert set(made) == {"flights.csv.gz", "airlines.csv"}
    assert made["airlines.csv"] == flights_path().with_name("airlines.csv").read_bytes()
    # The content, not the compressed bytes: those differ between builds of zlib.
    assert gzip.decompress(made["flights.csv.gz"]) == gzip.decompress(flights_path().read_bytes())
    assert make["make_files"](source) == made
