"""A real log that comes with the package, to try things on."""

from armnesia.datasets.nyc_flights import FLIGHTS_COLUMNS, flights, flights_by_airline, flights_path

__all__ = ["FLIGHTS_COLUMNS", "flights", "flights_by_airline", "flights_path"]
