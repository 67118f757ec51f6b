"""Schemathesis: requests made from the OpenAPI document have answers as documented, and none fails."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from armnesia.service.app import create_app
from armnesia.vault import Vault
from tests.databases import Place
from tests.service.certificates import processor
from tests.service.servers import Served, fill, serving_existing

pytestmark = pytest.mark.slow  # random requests to every route: CI runs them

CHECKS: Any = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("schema")
    place = Place(f"sqlite:///{folder}/vault.db", folder / "vault.db.keys")
    with serving_existing(place, fill(place), made=processor(folder)) as running:
        yield running


def document() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        made = processor(Path(folder))
    return create_app(lambda: Vault.open("sqlite:///never.db"), processor=made).openapi()


DOCUMENT = schemathesis.openapi.from_dict(document())


@DOCUMENT.parametrize()
@settings(
    max_examples=15, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
def test_every_answer_is_as_documented(case: Any, shared: Served) -> None:
    case.call_and_validate(base_url=shared.url, headers=shared.headers("admin"), checks=CHECKS)
