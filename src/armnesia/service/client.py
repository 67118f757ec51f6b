"""A client of the service."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

import httpx

from armnesia.core.errors import ArmnesiaError, InvalidInputError
from armnesia.core.randomness import secret_bytes
from armnesia.service.answer_types import (
    Decision,
    DecisionWithArms,
    DeletionDone,
    DeletionPreview,
    DeletionSummary,
    Health,
    RecordsAdded,
    SourceErasures,
)
from armnesia.vault import Certificate

_AGAIN = {429, 503}
_IN_USE = "key-in-use"
"""Its first request, to which no answer came, is still being answered: the same key gets that answer."""
_LONGEST_PAUSE = 30.0


class ServiceError(ArmnesiaError):
    """The service refused a request, or could not be reached.

    `status` is that of HTTP, None if there was no answer; `problem` is what it told, as RFC 9457 has it.
    """

    def __init__(self, message: str, status: int | None, problem: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.status, self.problem = status, dict(problem)

    @property
    def kind(self) -> str:
        """The kind of the problem, such as "similar-name"; empty if the service told none.

        >>> ServiceError("", 409, {"type": "urn:armnesia:problem:similar-name"}).kind
        'similar-name'
        """
        return str(self.problem.get("type", "")).rpartition(":")[2]


class Client:
    """Calls a service; used as a context manager.

    A request is repeated, up to `retries` times, if the service is too busy or cannot be reached: changes
    have an Idempotency-Key, so that none is made twice. Answers have the types of `answer_types`.

    >>> with Client("http://127.0.0.1:1", "token", retries=0) as client:
    ...     client.head()
    Traceback (most recent call last):
    armnesia.service.client.ServiceError: the service at http://127.0.0.1:1 cannot be reached: ConnectError
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        retries: int = 5,
        timeout: float = 60.0,
        verify: Any = True,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise InvalidInputError(f"url must begin with https://, or http:// on this machine; got {url!r}")
        self._url, self._retries = url.rstrip("/"), retries
        self._http = httpx.Client(
            base_url=self._url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=timeout,
            verify=verify if self._url.startswith("https://") else False,  # no authorities are read for http
            transport=transport,
            trust_env=False,  # a proxy of the environment would see everybody's names
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def decisions(self, **where: str | float) -> Iterator[Decision]:
        """The decisions whose keys have these values, each with `id`, `key`, `action` and `by`.

        Of a key with edges the value is a number, as in age=25, or its interval, as in age="18..30".
        """
        query = [("where", f"{name}={value}") for name, value in where.items()]
        for page in self._pages("/v1/decisions", query):
            yield from page["decisions"]

    def decision(self, id_: str = "only") -> DecisionWithArms:
        """One decision with the counts, means and intervals of its arms."""
        return cast("DecisionWithArms", self._get(f"/v1/decisions/{quote(id_, safe='')}"))

    def forget(
        self,
        users: Sequence[str | int] | None = None,
        records: Sequence[str | int] | None = None,
        *,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> DeletionDone:
        """Forget people, or single records; the options are those of `Vault.forget`."""
        body = _deletion(users, records, options)
        return cast("DeletionDone", self._post("/v1/deletions", body, idempotency_key))

    def preview(
        self,
        users: Sequence[str | int] | None = None,
        records: Sequence[str | int] | None = None,
        **options: Any,
    ) -> DeletionPreview:
        """What `forget` would do."""
        body = _deletion(users, records, {**options, "dry_run": True})
        return cast("DeletionPreview", self._post("/v1/deletions", body, None))

    def deletion(self, number: int) -> DeletionSummary:
        """The main facts of a deletion, and which later entries concern it."""
        return cast("DeletionSummary", self._get(f"/v1/deletions/{number}"))

    def erase_at_sources(self, *, purge: bool = True) -> SourceErasures:
        """Begin to erase rows of forgotten people at their sources; `source_erasures` says how far it is."""
        return cast("SourceErasures", self._post("/v1/erasures", {"purge": purge}, None))

    def source_erasures(self) -> SourceErasures:
        """The state of each source, what is due there, and the last erasure of the service (`last_run`)."""
        return cast("SourceErasures", self._get("/v1/erasures"))

    def certificate(self, number: int) -> Certificate:
        """The certificate of a ledger entry, which names nobody."""
        return Certificate.read(json.dumps(self._get(f"/v1/certificates/{number}")))

    def ledger(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """The entries of the ledger after one of them."""
        for page in self._pages("/v1/ledger", [], after):
            yield from page["entries"]

    def head(self) -> str:
        """The head of the ledger."""
        return str(self._get("/v1/ledger/head")["head"])

    def checkpoint(self) -> str:
        """The head of the ledger, signed: kept elsewhere, it shows if the ledger was changed."""
        return str(self._get("/v1/ledger/head")["checkpoint"])

    def add_records(
        self, rows: Iterable[Mapping[str, Any]], *, idempotency_key: str | None = None, **options: Any
    ) -> RecordsAdded:
        """Add rows, each with an id; the options are the names of columns, `replace` and `dry_run`."""
        body = {"rows": [dict(row) for row in rows], **options}
        return cast("RecordsAdded", self._post("/v1/records", body, idempotency_key))

    def health(self) -> Health:
        """The state of the service; also if it is failing."""
        request = self._http.build_request("GET", "/health")
        found = self._send(request, is_answer=lambda response: "database" in _told(response))
        return cast("Health", found)

    def _pages(
        self, path: str, query: list[tuple[str, str]], after: int | None = 0
    ) -> Iterator[dict[str, Any]]:
        while after is not None:
            page = self._get(path, [*query, ("after", str(after)), ("limit", "1000")])
            yield page
            after = page["next"]

    def _get(self, path: str, query: list[tuple[str, str]] | None = None) -> dict[str, Any]:
        return self._send(self._http.build_request("GET", path, params=tuple(query or ())))

    def _post(self, path: str, body: Mapping[str, Any], key: str | None) -> dict[str, Any]:
        headers = {"Idempotency-Key": key or secret_bytes(16).hex()}
        return self._send(self._http.build_request("POST", path, json=body, headers=headers))

    def _send(
        self,
        request: httpx.Request,
        is_answer: Callable[[httpx.Response], bool] = lambda response: response.is_success,
    ) -> dict[str, Any]:
        """Send a request until it is answered, and return its JSON."""
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                response = self._http.send(request)
            except httpx.TransportError as error:
                if last:
                    kind = type(error).__name__
                    message = f"the service at {self._url} cannot be reached: {kind}"
                    raise ServiceError(message, None, {}) from None
                time.sleep(min(2.0**attempt / 10, _LONGEST_PAUSE))
                continue
            if is_answer(response):
                return _told(response)
            refusal = _error(response)
            if last or not (response.status_code in _AGAIN or refusal.kind == _IN_USE):
                break
            time.sleep(_pause(response))
        raise refusal


def _deletion(
    users: Sequence[str | int] | None, records: Sequence[str | int] | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The body of a request to forget."""
    asked = {"users": users, "records": records, **options}
    return {name: value for name, value in asked.items() if value is not None}


def _told(response: httpx.Response) -> dict[str, Any]:
    """The JSON object of an answer; empty if it has none."""
    try:
        found = response.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _pause(response: httpx.Response) -> float:
    """After how many seconds to send a request again; a proxy may say that by a date."""
    text = response.headers.get("Retry-After", "")
    return min(float(text) if text.isdecimal() else 1.0, _LONGEST_PAUSE)


def _error(response: httpx.Response) -> ServiceError:
    found = _told(response)
    told = str(found.get("detail", "it told nothing else"))
    places = [f"{each.get('at')}: {each.get('message')}" for each in found.get("errors") or ()]
    if places:
        told = f"{told} ({'; '.join(places)})"
    if "source" in found:
        told = f"{told} (source {found['source']})"
    return ServiceError(f"the service answered {response.status_code}: {told}", response.status_code, found)
