"""Bodies that are made to take long: they are refused at once, and others are answered meanwhile."""

import pytest

from armnesia.service import tokens
from tests.service.servers import Served

_BYTES = 3_990_000
_WRONG = [
    ("/v1/deletions", b'{"users":[', b"[],"),
    ("/v1/deletions", b'{"records":[', b"{},"),
    ("/v1/records", b'{"rows":[', b"1,"),
    ("/v1/records", b'{"rows":[', b'{"a":[]},'),
    ("/v2/requests", b'{"subject_identities":[', b"1,"),
    ("/v2/requests", b'{"status_callback_urls":[', b"1,"),
]


@pytest.mark.parametrize(("path", "field"), [("/v1/deletions", "users"), ("/v1/records", "rows")])
def test_many_lists_are_refused_before_they_are_parsed(
    served: Served, monkeypatch: pytest.MonkeyPatch, path: str, field: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("it was parsed")

    monkeypatch.setattr(tokens, "parsed", fail)
    headers = {"Content-Type": "application/json"}
    for part in (b"[],", b"{},"):
        body = b'{"%b":[%b1]}' % (field.encode(), part * 150_000)
        with served.http() as http:
            answer = http.post(path, content=body, headers=headers)
        assert (answer.status_code, answer.content.count(b"batch-too-large")) == (413, 1)
