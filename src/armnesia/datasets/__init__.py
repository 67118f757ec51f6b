"""A real log that comes with the package, to try things on."""

from armnesia.datasets.nyc_flights import flights, flights_by_airline, flights_path

__all__ = ["flights", "flights_by_airline", "flights_path"]
