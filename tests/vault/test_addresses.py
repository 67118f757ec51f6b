"""A password in an address is shown nowhere: in no refusal, log, description, status or name of a file."""

import logging
import os
import re
import traceback
from pathlib import Path
from typing import Any

import psycopg
import pytest

from armnesia.core.errors import ArmnesiaError, InvalidInputError, VaultError
from armnesia.core.urls import redacted, without_password, without_schema
from armnesia.logs import open_source, read_log
from armnesia.vault import Configuration, Vault
from tests.databases import SERVER, fresh_schema, postgres_url

# In capital letters, because the random names of temporary folders have none.
SECRET = "S3CRET"
PIECES = ("S3", "CRET")
HERE = "localhost:1"
"""Where no server is."""

NO_SUCH_ADDRESS = (
    "mysql://ann:S3CRET@db/logs",
    "mysql://ann:S3CRET",
    "mysql://ann%3AS3CRET%40db/logs",
    "mysql://db/logs?password=S3CRET",
    "mysql://db/logs;pwd=S3CRET",
    "jdbc:postgresql://db/logs?user=ann&password=S3CRET",
    "postgresql+psycopg://ann:S3CRET@db/logs",
    "postgresql:/ann:S3CRET@db/logs",
    "ann:S3CRET@db/logs",
    "host=db user=ann password=S3CRET",
    "sqlite://ann:S3CRET@db/logs",
    "sqlite:///ann:S3CRET@db/logs",
    "sqlite:///vault.db?password=S3CRET",
)
MISREAD = (
    f"postgresql://ann:S3@CRET@{HERE}/logs",
    f"postgresql://ann:S3/CRET@{HERE}/logs",
    f"postgresql://ann:S3?CRET@{HERE}/logs",
    f"postgresql://ann:S3CRET@[{HERE}/logs",
    "postgresql://ann:S3CRET",
    "postgresql://ann:S3CRET@localhost:port/logs",
    f"postgresql://ann%3AS3CRET@{HERE}/logs",
    f"postgresql://{HERE}/logs&password=S3CRET",
    f"postgresql://{HERE}/logs;password=S3CRET",
    "postgresql://localhost&password=S3CRET/logs",
    f"postgresql://{HERE}/ann%3AS3CRET%40db",
    f"postgresql://{HERE}/logs?password=S3@CRET",
)
NOT_REACHED = (
    f"postgresql://ann:S3CRET@{HERE}/logs",
    f"postgresql://ann:S3%40CRET@{HERE}/logs",
    f"postgresql://{HERE}/logs?user=ann&password=S3CRET",
    f"postgresql://{HERE}/logs?user=ann&sslpassword=S3CRET&sslmode=prefer",
    f"postgresql://{HERE}/logs?pass%77ord=S3CRET",
    f"postgresql://{HERE}/logs?password=S3&CRET=x",
    f"postgresql://{HERE}/logs?oauth_client_secret=S3CRET",
    "postgresql:///logs?host=/no/such/socket&password=S3CRET",
    "postgresql://ann:S3CRET@no-such-host.invalid/logs",
)
OF_A_VAULT_ONLY = (
    f"postgresql://{HERE}/logs?schema=x;password=S3CRET",
    f"postgresql://{HERE}/logs?schema=x%26password=S3CRET",
    f"postgresql://ann:S3CRET@{HERE}?sslmode=prefer",
)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Where files of a wrong name would be seen, and every line that a library logs."""
    monkeypatch.chdir(tmp_path)
    for name in ("ARMNESIA_URL", "ARMNESIA_KEYS"):
        monkeypatch.delenv(name, raising=False)
    caplog.set_level(logging.DEBUG)


def assert_unshown(*texts: object) -> None:
    for text in texts:
        for piece in PIECES:
            assert piece not in str(text)


def assert_refused_unshown(ask: Any, *arguments: Any, caplog: Any, **options: Any) -> None:
    with pytest.raises(ArmnesiaError) as refusal:
        ask(*arguments, **options)
    # Frames show the source of the tests, so only what the error itself and those before it say.
    assert_unshown(*traceback.format_exception_only(refusal.value), repr(refusal.value.args), caplog.text)
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None
    assert_unshown(*os.listdir())


@pytest.mark.parametrize("url", NO_SUCH_ADDRESS + MISREAD + NOT_REACHED + OF_A_VAULT_ONLY)
@pytest.mark.parametrize("keys", [None, "keys"])
def test_a_vault_that_cannot_be_opened(url: str, keys: str | None, caplog: pytest.LogCaptureFixture) -> None:
    asked: dict[str, Any] = {"keys": keys, "timeout": 1.0, "caplog": caplog}
    assert_refused_unshown(Vault.open, url, **asked)
    assert_refused_unshown(Vault.create, url, Configuration(actions=("A", "B")), **asked)
    assert os.listdir() == []


@pytest.mark.parametrize("url", NO_SUCH_ADDRESS + MISREAD + NOT_REACHED)
def test_a_source_that_cannot_be_opened(url: str, caplog: pytest.LogCaptureFixture) -> None:
    columns = {"action": "arm", "reward": "won", "caplog": caplog}
    for table in (None, "clicks"):
        assert_refused_unshown(open_source, url, table=table, **columns)
    assert_refused_unshown(read_log, url, action="arm", reward="won", caplog=caplog)


@pytest.mark.parametrize("url", [NO_SUCH_ADDRESS[0], NO_SUCH_ADDRESS[8], MISREAD[0], NOT_REACHED[0]])
@pytest.mark.parametrize(
    "command",
    [
        ("init", "--url"),
        ("status", "--url"),
        ("verify", "--url"),
        ("decide", "--url"),
        ("restore", "export.json", "--url"),
        ("ingest", "log.csv", "--user-column", "user", "--url"),
        ("ingest", "--user-column", "user", "--url", "sqlite:///vault.db", "--table", "clicks"),
        ("ingest", "--user-column", "user", "--url", "sqlite:///vault.db"),
        ("decide",),
    ],
    ids=" ".join,
)
def test_a_command_that_cannot_be_done(run: Any, tmp_path: Path, url: str, command: tuple[str, ...]) -> None:
    Vault.create("sqlite:///vault.db").close()
    for name in ("log.csv", "export.json"):
        (tmp_path / name).write_text("action,reward,user\nA,1,ann\n")
    before = sorted(os.listdir())
    refused = run(*command, url)
    assert refused.code == 2
    assert refused.err.count("\n") == 1
    assert_unshown(refused.err, refused.out)
    assert sorted(os.listdir()) == before


def with_password(address: str) -> str:
    """The same address, with passwords that a server which asks for none, or for another, does not mind."""
    base, mark, parameters = address.partition("?")
    if SERVER not in os.environ:
        account, at, rest = base.removeprefix("postgresql://").partition("@")
        base = f"postgresql://{account.partition(':')[0] or 'postgres'}:{SECRET}@{rest if at else account}"
    return f"{base}?{parameters}{'&' if mark else ''}sslpassword={SECRET}"


def test_an_external_vault_and_its_source_that_are_open(run: Any, tmp_path: Path) -> None:
    schema, others = fresh_schema(), fresh_schema()
    server = with_password(postgres_url())
    url, keys = f"{server}&schema={schema}", str(tmp_path / "keys")
    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {others}")
        connection.execute(
            f"CREATE TABLE {others}.log AS SELECT 'A' AS action, 1 AS reward, 'ann' AS who, 1 AS n"
        )
        ours = ("--url", url, "--keys", keys)
        source = (server, "--table", f"{others}.log", "--user-column", "who")
        for command in (
            ("init", "--external", "--actions", "A,B", *ours, "--json"),
            ("ingest", *source, *ours),
            ("status", *ours),
            ("status", *ours, "--json"),
            ("verify", *ours),
            ("export", "export.jsonl", *ours),
        ):
            done = run(*command)
            assert done.code == 0
            assert_unshown(done.out, done.err)
        with Vault.open(url, keys=keys) as vault:
            with vault.database.reading() as session:
                descriptions = session.query("SELECT description FROM source")
            assert len(descriptions) == 1
            readable = re.sub(r"[\w+/=]{100,}", "", str(descriptions))  # random ciphertext may have any piece
            assert_unshown(vault.status(), vault.database.location, readable)
        connection.execute(f"DROP TABLE {others}.log")
        for words, code in ((("verify",), 1), (("forget", "--user", "ann"), 2), (("init",), 2)):
            refused = run(*words, *ours)
            assert refused.code == code
            assert_unshown(refused.out, refused.err)
        connection.execute(f"DROP TABLE {schema}.decision")
        refused = run("decide", *ours)
        assert refused.code == 2
        assert "SQLSTATE" in refused.err
        assert_unshown(refused.err)
    files = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert sorted(files) == ["export.jsonl", "keys", "keys.journal"]
    assert_unshown(*(re.sub(r"[\w+/=]{32,}", "", text) for text in files.values()))  # nor by chance in base64


def test_what_holds_no_password_is_shown() -> None:
    for address in ("vault.db", "sqlite://vault.db", "mysql://host/base", "logs/year=2024/ann@home.csv"):
        assert redacted(address) == address
    with pytest.raises(InvalidInputError, match=r"got 'vault.db'"):
        Vault.open("vault.db")
    with pytest.raises(InvalidInputError, match=r"source 'logs/year=2024/\*.csv' is not a file"):
        read_log("logs/year=2024/*.csv")
    with pytest.raises(VaultError, match=r"there is no vault at 'of ann@home/v.db'"):
        Vault.open("sqlite:///of ann@home/v.db")


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("postgresql://db/logs?password=a%20b%2Bc+d&schema=x", "postgresql://db/logs?password=a%20b%2Bc+d"),
        ("postgresql:///logs?host=/run/pg", "postgresql:///logs?host=/run/pg"),
        ("postgres://ann:a%40b@db:5433/logs?schema=x", "postgres://ann:a%40b@db:5433/logs"),
        ("postgresql://", "postgresql://"),
    ],
)
def test_what_goes_to_the_server_stays_as_it_was_given(url: str, kept: str) -> None:
    address, schema = without_schema(url)
    assert address == kept
    assert schema == ("x" if "schema" in url else "armnesia")
    if "password" in url:
        assert psycopg.conninfo.conninfo_to_dict(address)["password"] == "a b+c+d"


@pytest.mark.parametrize(
    ("url", "description"),
    [
        ("postgresql:///logs", "postgresql:///logs"),
        ("postgresql:///logs?host=%2Frun%2Fpg&password=S3CRET", "postgresql:///logs?host=/run/pg"),
        ("postgresql://db/logs?options=-c%20a%3Db+c", "postgresql://db/logs?options=-c%20a%3Db%2Bc"),
        ("postgresql://db/logs?sslmode=&nonsense=1", "postgresql://db/logs"),
    ],
)
def test_a_source_is_described_so_that_it_is_found_again(url: str, description: str) -> None:
    assert without_password(url) == description
    assert without_password(description) == description
