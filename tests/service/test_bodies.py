"""Bodies that are made to take long: they are refused at once, and others are answered meanwhile."""

import threading
import time
from pathlib import Path

import pytest

from armnesia.service import tokens
from armnesia.service.opendsr.processor import Processor
from tests.databases import Place
from tests.service.certificates import issued
from tests.service.servers import SETTINGS, Served, fill, serving_existing

_BYTES = 3_990_000
_WRONG = [
    ("/v1/deletions", b'{"users":[', b"[],"),
    ("/v1/deletions", b'{"records":[', b"{},"),
    ("/v1/records", b'{"rows":[', b"1,"),
    ("/v1/records", b'{"rows":[', b'{"a":[]},'),
    ("/v2/requests", b'{"subject_identities":[', b"1,"),
    ("/v2/requests", b'{"status_callback_urls":[', b"1,"),
]


@pytest.mark.parametrize("length", [700_000, _BYTES])
def test_many_wrong_parts_hold_nobody_up(sqlite_place: Place, tmp_path: Path, length: int) -> None:
    certificate, key = issued(tmp_path, names=("opendsr.processor.example",))
    made = Processor("opendsr.processor.example", certificate, key)
    unknown = b",".join(b'"%d":1' % number for number in range(length // 12))
    bodies = [(path, head + part * (length // len(part)) + b"1]}") for path, head, part in _WRONG]
    bodies += [
        ("/v1/deletions", b"{%s}" % unknown),
        ("/v1/records", b'{"rows":[{%s}]}' % unknown.replace(b":1", b":[]")),
        ("/v2/requests", b'{"extensions":{%s}}' % unknown),
    ]
    with (
        serving_existing(sqlite_place, fill(sqlite_place), SETTINGS, made) as served,
        served.http() as http,
        served.http(None) as other,
    ):
        assert http.post("/v1/deletions", json={}).status_code == 422  # the schema is made once
        ended, longest = threading.Event(), [0.0]

        def ask() -> None:
            while not ended.is_set():
                begun = time.process_time()  # of the service as well; on a busy machine the clock says little
                assert other.get("/live").status_code == 200
                longest[0] = max(longest[0], time.process_time() - begun)

        asking = threading.Thread(target=ask)
        asking.start()
        for path, body in bodies:
            answer = http.post(path, content=body, headers={"Content-Type": "application/json"})
            assert answer.status_code in (400, 413, 422), (path, body[:40])
            assert len(answer.content) < 10_000
        ended.set()
        asking.join()
        assert longest[0] < 1.0


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
