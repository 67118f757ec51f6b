"""A password in the URL of a source is in no message and no description."""

import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.logs import open_source, read_log
from armnesia.core.urls import without_password


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:s3cret@db/logs", "postgresql://ann@db/logs"),
        ("postgres://ann@db:5433/logs", "postgresql://ann@db:5433/logs"),
        (
            "postgresql://db/logs?user=ann&password=s3cret&sslmode=require",
            "postgresql://db/logs?user=ann&sslmode=require",
        ),
        (
            "postgresql://ann:s3%40cret@/logs?host=/run/pg&sslpassword=s3cret",
            "postgresql://ann@/logs?host=/run/pg",
        ),
    ],
)
def test_a_password_is_left_out(url: str, shown: str) -> None:
    assert without_password(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:s3@cret@db/logs",
        "postgresql://ann:s3/cret@db/logs",
        "postgresql://ann:s3?cret@db/logs",
        "postgresql://ann:s3#cret@db/logs",
        "postgresql://ann:s3cret@db:port/logs",
        "postgresql://ann:s3cret@localhost:1/logs",
        "postgresql://ann:s3cret@no-such-host.invalid/logs",
        "postgresql://ann:s3cret@localhost:1/logs?nonsense=1",
        "postgresql://ann:s3cret@localhost:1/logs?connect_timeout=s3cret",
        "mysql://ann:s3cret@db/logs",
    ],
)
def test_no_message_shows_a_password(url: str) -> None:
    for read in (open_source, read_log):
        with pytest.raises((InvalidLogError, InvalidInputError)) as caught:
            read(url, table="clicks", action="arm", reward="won", user="who")
        for piece in ("s3", "cret"):
            assert piece not in str(caught.value).replace("connect_timeout=s3cret", "")
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
