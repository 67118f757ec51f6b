"""Numbers for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """The numbers of one service; no label names anybody."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self.requests = Counter(
            "armnesia_requests", "Requests.", ("method", "route", "status"), registry=registry
        )
        self.seconds = Histogram(
            "armnesia_request_seconds", "Time to answer.", ("route",), buckets=_SECONDS, registry=registry
        )
        self.deletions = Counter(
            "armnesia_deletions", "Requests to forget that were answered.", registry=registry
        )
        self.group_sizes = Histogram(
            "armnesia_group_size", "Requests in one transaction.", buckets=_SIZES, registry=registry
        )
        self.waiting = Gauge("armnesia_waiting", "Requests that wait for the writer.", registry=registry)
        self.ledger_length = Gauge("armnesia_ledger_length", "Entries of the ledger.", registry=registry)
        self.source_erasures_due = Gauge(
            "armnesia_source_erasures_due",
            "Sources of an external vault where rows of forgotten people may still lie.",
            registry=registry,
        )
        self.source_purges_due = Gauge(
            "armnesia_source_purges_due",
            "Sources of an external vault whose files or earlier versions still hold rows.",
            registry=registry,
        )

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests.labels(method, route, status).inc()
        self.seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All numbers, in the text form of Prometheus."""
        return generate_latest(self._registry)
