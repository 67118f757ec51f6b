"""The connector for Fides: as its published schema has it, and played against a running service.

The models below say, in our words, which fields Fides' own models have and demand
(github.com/ethyca/fides at 96aa40cba74e, src/fides/api/schemas: saas/saas_config.py,
saas/async_polling_configuration.py, saas/strategy_configuration.py and limiter/rate_limit_config.py; datasets
as fideslang 3.1.4 has them). They have no more fields than the connector uses, and refuse any other.
"""

import json
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import httpx
import pytest
import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from armnesia.service.app import create_app
from tests.databases import Place
from tests.service.certificates import processor
from tests.service.servers import PEOPLE, SETTINGS, Served, fill, let_the_desk_work, listening

FOLDER = Path(__file__).parents[2] / "integrations" / "fides"
KEY = "<instance_fides_key>"  # Fides refuses a template with any other
PLACEHOLDER = re.compile(r"<([^<>]+)>")
OF_FIDES = {"uuid", "iso_8601_datetime", "privacy_request_id", "correlation_id"}
"""What Fides itself has a value for in erasure requests."""
Text = Annotated[str, Field(min_length=1)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ParamValue(Strict):
    """Fides demands exactly one of `identity`, `references` and `connector_param`."""

    name: Text
    identity: Text | None = None
    connector_param: Text | None = None


class Status(Strict):
    method: Literal["GET"]
    path: Text
    status_path: Text
    status_completed_value: Text


class Polling(Strict):
    """For erasures there is nothing to fetch, so that `result_request` is left out."""

    status_request: Status


class AsyncConfig(Strict):
    strategy: Literal["polling"]
    configuration: Polling


class Delete(Strict):
    method: Literal["POST"]
    path: Text
    param_values: list[ParamValue]
    body: Text
    correlation_id_path: Text
    async_config: AsyncConfig


class Requests(Strict):
    delete: Delete


class Endpoint(Strict):
    name: Text
    requests: Requests


class Token(Strict):
    token: Text


class Bearer(Strict):
    strategy: Literal["bearer"]
    configuration: Token


class ClientConfig(Strict):
    protocol: Literal["https"]
    host: Text
    authentication: Bearer


class ConnectorParam(Strict):
    name: Text
    label: Text
    description: Text
    options: list[Text] | None = None
    default_value: Text | None = None
    sensitive: bool = False
    type: Literal["endpoint"] | None = None
    allowed_values: list[Text] | None = None


class Probe(Strict):
    method: Literal["GET"]
    path: Text


class Limit(Strict):
    rate: Annotated[int, Field(gt=0)]
    period: Literal["second", "minute", "hour", "day"]


class RateLimit(Strict):
    limits: Annotated[list[Limit], Field(min_length=1)]


class Config(Strict):
    fides_key: Literal["<instance_fides_key>"]
    name: Text
    type: Annotated[str, Field(pattern=r"^[a-z_]+$")]
    description: Text
    version: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")]
    connector_params: list[ConnectorParam]
    client_config: ClientConfig
    test_request: Probe
    rate_limit_config: RateLimit
    endpoints: Annotated[list[Endpoint], Field(min_length=1, max_length=1)]


class Meta(Strict):
    primary_key: bool
    data_type: Literal["string"]


class DatasetField(Strict):
    name: Text
    description: Text
    data_categories: list[Annotated[str, Field(pattern=r"^user(\.[a-z_]+)*$")]]
    fides_meta: Meta


class Collection(Strict):
    name: Text
    fields: list[DatasetField]


class Dataset(Strict):
    fides_key: Literal["<instance_fides_key>"]
    name: Text
    description: Text
    collections: list[Collection]


def loaded(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text("utf-8"))


@pytest.fixture
def config() -> Config:
    return Config(**loaded("armnesia_config.yml")["saas_config"])


def test_the_files_are_as_fides_reads_them(config: Config) -> None:
    (dataset,) = (Dataset(**each) for each in loaded("armnesia_dataset.yml")["dataset"])
    (endpoint,), (collection,) = config.endpoints, dataset.collections
    assert collection.name == endpoint.name
    request = endpoint.requests.delete
    # Without a read request, the first value is the primary key of the collection.
    (field,) = collection.fields
    assert (field.name, field.fides_meta.primary_key) == (request.param_values[0].name, True)
    for value in request.param_values:
        assert (value.identity is None) != (value.connector_param is None)
    params = {each.name: each for each in config.connector_params}
    assert {v.connector_param for v in request.param_values if v.connector_param} <= set(params)
    assert params["token"].sensitive
    for each in params.values():
        assert each.default_value is None or each.default_value in (each.options or ())
    # If one parameter is an address with values that are allowed, that of the host has to be one.
    host = params[PLACEHOLDER.findall(config.client_config.host)[0]]
    assert (host.type, host.allowed_values) == ("endpoint", [])
    known = OF_FIDES | {value.name for value in request.param_values}
    assert set(PLACEHOLDER.findall(request.body)) <= known
    assert set(PLACEHOLDER.findall(request.async_config.configuration.status_request.path)) <= known


def test_a_field_that_fides_does_not_know_is_refused() -> None:
    changed = loaded("armnesia_config.yml")["saas_config"]
    changed["endpoints"][0]["requests"]["delete"]["methd"] = "POST"
    with pytest.raises(ValidationError):
        Config(**changed)


class Fides:
    """What Fides does with an erasure request for a connector with polling."""

    def __init__(self, config: Config, secrets: dict[str, str], url: str) -> None:
        self._config, self._secrets = config, secrets
        token = self._filled(config.client_config.authentication.configuration.token, secrets)
        self._http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, trust_env=False)
        self._request = config.endpoints[0].requests.delete

    def __enter__(self) -> "Fides":
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    @staticmethod
    def _filled(text: str, values: dict[str, str]) -> str:
        """Placeholders are replaced as text."""
        return PLACEHOLDER.sub(lambda found: values[found[1]], text)

    def test(self) -> int:
        return self._http.get(self._config.test_request.path).status_code

    def send(self, identities: dict[str, str]) -> dict[str, str]:
        """The first request; returns the values that are kept for polling."""
        values = {
            "uuid": str(uuid.uuid4()),
            "iso_8601_datetime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        for value in self._request.param_values:
            source = identities if value.identity else self._secrets
            values[value.name] = source[value.identity or value.connector_param or ""]
        answer = self._http.post(
            self._request.path,
            content=self._filled(self._request.body, values),
            headers={"Content-Type": "application/json"},
        )
        assert answer.is_success, answer.text
        return {**values, "correlation_id": answer.json()[self._request.correlation_id_path]}

    def is_completed(self, values: dict[str, str]) -> bool:
        """One check of the status."""
        asked = self._request.async_config.configuration.status_request
        answer = self._http.get(self._filled(asked.path, values))
        assert answer.is_success, answer.text
        assert "application/json" in answer.headers["content-type"]
        return bool(answer.json()[asked.status_path] == asked.status_completed_value)


@pytest.fixture
def served(sqlite_place: Place, tmp_path: Path) -> Iterator[Served]:
    tokens = fill(sqlite_place)
    app = create_app(sqlite_place.open, SETTINGS, processor=processor(tmp_path))
    with listening(app) as url:
        yield Served(url, sqlite_place, tokens, app)


def test_fides_forgets_a_person(config: Config, served: Served) -> None:
    secrets = {"token": served.tokens["operator"], "regulation": "gdpr", "domain": "vault.example.org"}
    with Fides(config, secrets, served.url) as fides:
        assert fides.test() == 200
        values = fides.send({"email": PEOPLE[0]})
        let_the_desk_work(served, lambda: fides.is_completed(values))
    with served.place.open() as vault:
        assert vault.forget([PEOPLE[0]]).repeated
        assert vault.n_records == 4 * (len(PEOPLE) - 1)
        assert vault.verify().problems == ()


def test_the_test_of_the_connection_needs_the_token(config: Config, served: Served) -> None:
    with Fides(config, {"token": "wrong", "regulation": "gdpr"}, served.url) as fides:
        assert fides.test() == 401


def test_the_body_is_json_once_filled(config: Config) -> None:
    values = dict.fromkeys(PLACEHOLDER.findall(config.endpoints[0].requests.delete.body), "x")
    body = json.loads(Fides._filled(config.endpoints[0].requests.delete.body, values))
    assert len(body["subject_identities"]) == 1
