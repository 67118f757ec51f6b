"""Previews that take long leave readers to others."""

import threading

from tests.service.servers import PEOPLE, Served


def test_long_previews_do_not_occupy_all_readers(served: Served) -> None:
    service, go_on = served.app.state.service, threading.Event()
    preview = {"users": [PEOPLE[0]], "dry_run": True}
    with served.http() as http:
        assert http.post("/v1/deletions", json=preview).status_code == 200
    read = service.worker.read

    def slow(function: object) -> object:
        def wait(vault: object) -> object:
            if function.__qualname__.startswith("create_deletion"):  # type: ignore[attr-defined]
                go_on.wait(30)
            return function(vault)  # type: ignore[operator]

        return read(wait)

    service.worker.read = slow
    try:
        with served.http() as http:
            asking = [
                threading.Thread(target=served_preview, args=(served, preview), daemon=True) for _ in range(8)
            ]
            for each in asking:
                each.start()
            for path in ("/v1/decisions", "/v1/ledger/head", "/health", "/metrics"):
                assert http.get(path, timeout=10).status_code == 200
    finally:
        go_on.set()
        for each in asking:
            each.join(30)


def served_preview(served: Served, preview: object) -> None:
    with served.http() as http:
        assert http.post("/v1/deletions", json=preview).status_code == 200
