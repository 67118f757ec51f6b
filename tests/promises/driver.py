"""Everything that the promise tests ask of armnesia, an operation each: by its command line and its HTTP API.

The tests speak of people, rows and decisions. What commands, options and keys of JSON are called stands here
alone, so that a change of names is a change of this file.
"""

import base64
import contextlib
import io
import json
import os
import subprocess
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psycopg

from armnesia.cli.main import main
from tests.databases import Place, fresh_place

COLUMNS = ("event", "person", "arm", "reward", "country")
MAPPING = ("--action-column", "arm", "--reward-column", "reward", "--user-column", "person")
IDS = ("--id-column", "event")


class Row(NamedTuple):
    """One logged decision; its reward is a number of quarters, which is exact in every kind of log."""

    event: str
    person: str
    arm: str
    quarters: int
    country: str = "DE"

    @property
    def values(self) -> tuple[Any, ...]:
        return self.event, self.person, self.arm, self.quarters / 4, self.country


Statistics = dict[str, tuple[int, float]]
"""Of each arm its number of records, and their mean reward."""


def statistics_of(rows: Iterable[Row], arms: Sequence[str] = ("A", "B")) -> Statistics:
    """What retraining on these rows gives, in plain Python."""
    quarters = defaultdict(list, {arm: list[int]() for arm in arms})
    for row in rows:
        quarters[row.arm].append(row.quarters)
    return {arm: (len(own), sum(own) / (4 * len(own) or 1)) for arm, own in quarters.items()}


def write_csv(path: Path, rows: Iterable[Row], columns: Sequence[str] = COLUMNS) -> Path:
    lines = [",".join(columns), *(",".join(str(value) for value in row.values) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


class Refused(Exception):  # noqa: N818 (reads well where it is expected)
    """A command refused: with one sentence, and a code that says whose fault it is."""

    def __init__(self, code: int, sentence: str, answer: Any) -> None:
        super().__init__(sentence)
        self.code, self.sentence, self.answer = code, sentence, answer


def command(*arguments: object) -> Any:
    """Run a command; what it answers as JSON."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        try:
            main([str(argument) for argument in arguments])
            code: Any = 0
        except SystemExit as stopped:
            code = stopped.code
    text = out.getvalue()
    answer = json.loads(text) if text.startswith(("{", "[")) else text
    if code != 0:
        raise Refused(code, err.getvalue().strip(), answer)
    return answer


def decide_log(path: Path, *options: object) -> Any:
    """Decide on a log, without a vault."""
    return command("decide", path, "--action-column", "arm", "--reward-column", "reward", *options, "--json")


class Forgotten(NamedTuple):
    """What was answered to a request."""

    entry: int
    records: int
    held: int
    again: bool
    served: str | None


@dataclass
class Driven:
    """A vault, as its operator has it: an address, a file of keys, and commands."""

    place: Place
    folder: Path
    _copies: int = 0
    ADD_ARM_C = ("arms", "add", "C")
    RETIRE_ARM_B = ("arms", "retire", "B")
    ROTATE_SIGNING_KEY = ("rotate-key",)
    COMPACT = ("compact",)
    ERASING_TOO = ("--erase-at-source", "--purge", "--ignore-retention")

    def run(self, *words: object) -> Any:
        """Run a command on this vault."""
        where = ("--url", self.place.url, "--keys", self.place.keys)
        return command(*words, *where, "--json")

    def log(self, rows: Iterable[Row]) -> Path:
        """The rows as a new file."""
        self._copies += 1
        return write_csv(self.folder / f"log-{self._copies}.csv", rows)

    def init(self, *, arms: str = "A,B", user_type: str = "text", options: Sequence[object] = ()) -> Any:
        return self.run("init", "--actions", arms, "--user-type", user_type, *options)

    def ingest(self, source: object, *options: object, ids: bool = True) -> Any:
        """How many rows were added, and how many of forgotten people were left out."""
        words = self.ingest_words(source) if ids else ("ingest", source, *MAPPING)
        answer = self.run(*words, *options)
        return {"added": answer["added"], "left out": answer["suppressed"], "replaced": answer["replaced"]}

    def ingest_words(self, source: object) -> tuple[object, ...]:
        """The command, for a process of its own, too."""
        return ("ingest", source, *MAPPING, *IDS)

    def add(self, rows: Iterable[Row], *options: object) -> Any:
        return self.ingest(self.log(rows), *options)

    def correct(self, rows: Iterable[Row]) -> Any:
        return self.add(rows, "--replace")

    def served(self, **key: str) -> str:
        """The arm that is served."""
        (decision,) = self.decisions(**key).values()
        return decision

    def decisions(self, **key: str) -> dict[str, str]:
        """The arm that each decision serves, by its key."""
        answer = self.run("decide", *(word for k, v in key.items() for word in ("--where", f"{k} = {v}")))
        each = answer.get("decisions", [answer])
        return {",".join(map(str, one.get("key", {}).values())): one["action"] for one in each}

    def signed_decisions(self) -> str:
        return json.dumps(self.run("decide", "--signed"))

    def statistics(self, **key: str) -> Statistics:
        """The records and the mean of each arm, for the operator."""
        where = (word for k, v in key.items() for word in ("--where", f"{k} = {v}"))
        scores = self.run("status", "--scores", *where)["scores"]
        return {one["action"]: (one["count"], one["mean"] or 0.0) for one in scores}

    def records(self) -> int:
        return int(self.run("status")["records"])

    def forget(self, *people: str, options: Sequence[object] = ()) -> Forgotten:
        return self._forgotten([word for name in people for word in ("--user", name)], options)

    def forget_events(self, *events: str, options: Sequence[object] = ()) -> Forgotten:
        return self._forgotten(["--records", ",".join(events)], options)

    def _forgotten(self, names: Sequence[str], options: Sequence[object]) -> Forgotten:
        done = self.run(*self.forget_words(*names), *options)
        return Forgotten(done["entry"], done["records"], done["held"], done["repeated"], done["served"])

    def forget_words(self, *names: str) -> tuple[str, ...]:
        """The command, for a process of its own, too."""
        return ("forget", *names)

    def preview(self, *people: str) -> Any:
        """What would be forgotten; and with which probabilities each arm would be served."""
        return self.run(*self.forget_words(*(w for p in people for w in ("--user", p))), "--dry-run")

    def readmit(self, *people: str) -> Any:
        return self.run("readmit", *(word for name in people for word in ("--user", name)))

    def certificate(self, person: str) -> Path:
        """The file that is handed out to one person."""
        self._copies += 1
        path = self.folder / f"certificate-{self._copies}.json"
        self.run("certificate", "show", "--user", person, "--out", path)
        return path

    def public_keys(self) -> Path:
        """What an operator publishes, for those who check certificates."""
        self._copies += 1
        path = self.folder / f"public-keys-{self._copies}.json"
        path.write_text(json.dumps(self.run("public-key")), encoding="utf-8")
        return path

    def signing_key(self) -> str:
        """The public key of the one in use."""
        return str(self.run("public-key")["keys"][-1])

    def checkpoint(self) -> Path:
        """The signed size and root of the ledger."""
        path = self.folder / "checkpoint.txt"
        path.write_text(self.run("ledger", "--checkpoint-only")["checkpoint"], encoding="utf-8")
        return path

    def journal(self) -> list[str]:
        """The lines of the file beside the keys that every commit adds one to."""
        return Path(f"{self.place.keys}.journal").read_text(encoding="utf-8").splitlines()

    def auditors_export(self) -> Path:
        """What an auditor gets: the ledger, without any digest of a name."""
        self._copies += 1
        path = self.folder / f"export-{self._copies}.json"
        self.run("export", path)
        return path

    def ledger(self) -> list[dict[str, Any]]:
        return list(self.run("ledger")["entries"])

    def kinds(self) -> list[str]:
        """What each entry of the ledger is about."""
        return [entry["kind"] for entry in self.ledger()]

    def requests(self) -> int:
        """How many entries answer a request."""
        return self.kinds().count("forget")

    def head(self) -> str:
        """The last known head, as it is stored elsewhere."""
        return str(self.run("ledger", "--checkpoint-only")["head"])

    def problems(self) -> list[str]:
        """What `verify` says; a vault that it cannot open is a problem."""
        try:
            return list(self.run("verify")["problems"])
        except Refused as refused:
            answer = refused.answer
            return list(answer["problems"]) if isinstance(answer, dict) else [refused.sentence]

    def compact(self) -> None:
        self.run("compact")

    def erase(self) -> Any:
        """Delete the rows of all forgotten people at the sources, and what still holds them."""
        return self.run("erase", "--purge", "--ignore-retention")

    def moved(self, old: object, new: object) -> None:
        """Tell the vault where a source is now."""
        self.run("restore", "--moved", old, new)

    def without(self, source: object) -> None:
        """Tell the vault that a source is lost."""
        self.run("restore", "--without", source)

    def forgotten_before(self, *people: str) -> Any:
        """Forget people; of whom the answer says that they were forgotten before."""
        return self.run(*self.forget_words(*(w for p in people for w in ("--user", p))))["forgotten_before"]

    def ingest_columns(self, source: object, columns: dict[str, str]) -> int:
        """Ingest a log with columns of other names; how many rows were added."""
        words = (word for kind, name in columns.items() for word in (f"--{kind}-column", name))
        return int(self.run("ingest", source, *words)["added"])

    def rotate_signing_key(self, *options: object) -> None:
        self.run("rotate-key", *options)

    def change_policy(self, *options: object) -> None:
        self.run("policy", *options)

    def add_arm(self, arm: str) -> None:
        self.run("arms", "add", arm)

    def retire_arm(self, arm: str) -> None:
        self.run("arms", "retire", arm)

    def token(self, role: str) -> str:
        """A token of the service."""
        return str(self.run("token", "create", "--role", role)["text"])

    def restore(self, *options: object) -> Any:
        """Bring the vault in line with its journal."""
        return self.run("restore", *options)

    def copy_of_database(self) -> Any:
        """A backup: of SQLite by the command, of PostgreSQL by one of its own tools."""
        self._copies += 1
        if self.place.url.startswith("sqlite"):
            path = self.folder / f"backup-{self._copies}.db"
            self.run("backup", path)
            return path
        with self.database() as database:
            copied = {}
            for table in database.tables():
                with database.cursor().copy(f"COPY {table} TO STDOUT") as stream:
                    copied[table] = b"".join(bytes(block) for block in stream)
        return copied

    def put_back(self, copy: Any) -> None:
        """Put a backup in the place of the database, by other means than armnesia."""
        if isinstance(copy, Path):
            for suffix in ("-wal", "-shm"):
                Path(f"{self.place.path}{suffix}").unlink(missing_ok=True)
            self.place.path.write_bytes(copy.read_bytes())
            return
        with self.database() as database:
            database.change(f"TRUNCATE {', '.join(copy)}")
            for table, content in copy.items():
                with database.cursor().copy(f"COPY {table} FROM STDIN") as stream:
                    stream.write(content)

    @contextmanager
    def database(self) -> Iterator["Database"]:
        """The database, as somebody sees it who goes past armnesia."""
        if self.place.url.startswith("sqlite"):
            import sqlite3

            with closing(sqlite3.connect(self.place.path)) as connection, connection:
                yield Database(connection)
            return
        address, _, schema = self.place.url.partition("schema=")
        with psycopg.connect(address.rstrip("?&"), autocommit=True) as connected:
            connected.execute(f"SET search_path = {schema}")
            yield Database(connected)

    def bytes_of_database(self) -> bytes:
        """What the files of an SQLite vault hold."""
        files = self.place.path.parent.glob(f"{self.place.path.name}*")
        return b"".join(file.read_bytes() for file in files)


class Database:
    """Plain SQL on the tables of a vault, whatever they are called."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.is_sqlite = not isinstance(connection, psycopg.Connection)

    def cursor(self) -> Any:
        return self.connection.cursor()

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return list(self.connection.execute(sql.replace("?", "?" if self.is_sqlite else "%s"), values))

    def change(self, sql: str, *values: object) -> int:
        """How many rows were changed."""
        done = self.connection.execute(sql.replace("?", "?" if self.is_sqlite else "%s"), values)
        return int(done.rowcount)

    def tables(self) -> list[str]:
        sql = (
            "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            if self.is_sqlite
            else "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename"
        )
        return [str(name) for (name,) in self.rows(sql)]

    def columns(self, table: str) -> list[str]:
        cursor = self.connection.execute(f"SELECT * FROM {table} LIMIT 0")
        return [column[0] for column in cursor.description]


def driven(database: str, folder: Path, **options: Any) -> Driven:
    """A new vault on a database."""
    vault = Driven(fresh_place(database, folder), folder)
    vault.init(**options)
    return vault


def driven_with_arms(folder: Path, *arms: str) -> Driven:
    """A new vault, whose arms have any names."""
    (folder / "arms.txt").write_text("\n".join(arms), encoding="utf-8")
    vault = Driven(fresh_place("sqlite", folder), folder)
    vault.run("init", "--actions-file", folder / "arms.txt", "--user-type", "text")
    return vault


def check_certificate(path: Path, keys: object, *options: object) -> list[str]:
    """What is wrong with a certificate, told to somebody who has no vault."""
    try:
        return list(
            command("certificate", "verify", path, "--public-key", keys, *options, "--json")["problems"]
        )
    except Refused as refused:
        return list(refused.answer["problems"]) if isinstance(refused.answer, dict) else [refused.sentence]


def words_of_certificate(path: Path, keys: object) -> str:
    """What a certificate says to people."""
    return str(command("certificate", "verify", path, "--public-key", keys))


def level_of(certificate: Path) -> str:
    payload = json.loads(certificate.read_text(encoding="utf-8"))["envelope"]["payload"]
    return str(json.loads(base64.b64decode(payload))["predicate"]["level"])


@dataclass
class Service:
    """`armnesia serve` in a process of its own, and a token of each role."""

    url: str
    vault: Driven
    tokens: dict[str, str]
    process: "subprocess.Popen[str]"
    lines: list[str] = field(default_factory=list)

    def request(
        self, method: str, path: str, role: str | None = "operator", **options: Any
    ) -> httpx.Response:
        headers = dict(options.pop("headers", {}))
        if role is not None:
            headers["Authorization"] = f"Bearer {self.tokens.get(role, role)}"
        with httpx.Client(base_url=self.url, timeout=60, trust_env=False) as client:
            return client.request(method, path, headers=headers, **options)

    def decisions(self, role: str | None = "reader") -> httpx.Response:
        return self.request("GET", "/v1/decisions", role)

    def forget(
        self, *people: str, role: str | None = "operator", key: str = "", **more: Any
    ) -> httpx.Response:
        headers = {"Idempotency-Key": key} if key else {}
        return self.request("POST", "/v1/deletions", role, json={"users": people, **more}, headers=headers)

    def add(self, rows: Iterable[Row], role: str = "operator") -> httpx.Response:
        columns = {"action": "arm", "reward": "reward", "user": "person", "id": "event"}
        listed = [dict(zip(COLUMNS, row.values, strict=True)) for row in rows]
        return self.request("POST", "/v1/records", role, json={"rows": listed, **columns})

    def certificate(self, entry: int, role: str | None = "reader") -> httpx.Response:
        return self.request("GET", f"/v1/certificates/{entry}", role)

    def health(self, path: str = "/healthz", role: str | None = None) -> httpx.Response:
        return self.request("GET", path, role)

    def kill(self) -> None:
        """End it as a failure of the machine would."""
        self.process.kill()
        self.process.wait(60)
        self.lines += (self.process.stderr or io.StringIO()).readlines()


@contextmanager
def serving(vault: Driven) -> Iterator[Service]:
    """Serve a vault on a free port."""
    tokens = {role: vault.token(role) for role in ("reader", "operator", "admin")}
    where = ["serve", "--url", vault.place.url, "--keys", str(vault.place.keys), "--port", "0"]
    code = "from armnesia.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *where, "--verify-hours", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    service = Service("", vault, tokens, process)
    assert process.stderr is not None
    with process.stderr:
        for line in process.stderr:
            service.lines.append(line)
            if "running on" in line:
                service.url = json.loads(line)["message"].split("running on ")[1].split()[0]
                break
        assert service.url, service.lines
        try:
            yield service
        finally:
            if process.poll() is None:
                service.kill()
