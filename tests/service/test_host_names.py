"""Requests to names that were not declared, as a page of another site could make a browser send them."""

from typing import Any

import httpx
import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.service.app import create_app
from armnesia.service.server import Address
from tests.databases import Place
from tests.service.certificates import processor
from tests.service.processes import serve_process
from tests.service.servers import NO_AUTHORITY, SETTINGS, fill, listening


def asked(url: str, host: str | None, path: str = "/v1/decisions", **headers: str) -> Any:
    named = {} if host is None else {"Host": host}
    return httpx.get(url + path, headers={**named, **headers}, trust_env=False, verify=NO_AUTHORITY)


def test_a_request_to_another_name_is_not_answered(sqlite_place: Place) -> None:
    tokens = fill(sqlite_place)
    app = create_app(
        sqlite_place.open, SETTINGS, hosts={"localhost", "127.0.0.1", "[::1]", "vault.example.org"}
    )
    token = {"Authorization": f"Bearer {tokens['reader']}"}
    with listening(app) as url:
        for name in ("localhost", "LOCALHOST:99", "127.0.0.1", "[::1]:8080", "Vault.Example.org", None):
            assert asked(url, name, **token).status_code == 200
        for name in (
            "attacker.example",
            "vault.example.org.attacker.example",
            "localhost.",
            "localhost@attacker.example",
            "attacker.example@localhost",
            "[::1",
            "localhost:80:80",
            "",
            "localhost, attacker.example",
        ):
            for path in ("/v1/decisions", "/healthz", "/openapi.json", "/nothing"):
                refused = asked(url, name, path, **token)
                assert (refused.status_code, refused.text) == (400, "Invalid host header"), name


@pytest.mark.slow
def test_the_command_answers_to_declared_names_only(sqlite_place: Place, tmp_path: Any) -> None:
    made = processor(tmp_path)
    domain = made.domain
    files = ["--opendsr-certificate", str(made.certificate), "--opendsr-key", str(made.key)]
    fill(sqlite_place)
    options = ["--host-name", "vault.example.org", "--host-name", "10.0.0.5"]
    with serve_process(sqlite_place, *options, "--opendsr-domain", domain, *files) as running:
        found = {
            name: asked(running.url, name, "/healthz").status_code
            for name in ("vault.example.org", "10.0.0.5", "localhost", domain, "other.example.org")
        }
    assert list(found.values()) == [200, 200, 200, 200, 400]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"host": "0.0.0.0", "behind_tls_proxy": True}, "is every address of this machine"),
        ({"host": "::", "behind_tls_proxy": True}, "is every address of this machine"),
        ({"names": ("https://a.example",)}, "a host name must be a name or an address"),
        ({"names": ("a.example:80",)}, "a host name must be a name or an address"),
        ({"names": ("*",)}, "a host name must be a name or an address"),
        ({"names": ("fe80::1",)}, "in brackets"),
        ({"names": ("",)}, "a host name must be a name or an address"),
    ],
)
def test_an_address_must_say_its_names(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        Address(**given)


def test_names_of_an_address() -> None:
    every = Address("0.0.0.0", behind_tls_proxy=True, names=("A.example", "[fe80::1]"))
    assert every.hosts == {"localhost", "127.0.0.1", "[::1]", "A.example", "[fe80::1]"}
    assert "10.0.0.5" in Address("10.0.0.5", behind_tls_proxy=True).hosts
