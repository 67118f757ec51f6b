"""The vault that is attacked: an SQLite file with rows, forgotten people, a backup, keys and a pin."""

import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armnesia.core.errors import ArmnesiaError
from armnesia.vault import Certificate, Configuration, Head, Vault
from armnesia.vault.keys.keyring import Keyring
from tests.red_team.attacks import Trial, Verdict
from tests.vault.raw_vaults import arms_in

PEOPLE = 60
ROWS = 1500
UNIT = 10**9
ACTIONS = ("A", "B", "C")


@dataclass(frozen=True)
class Target:
    """A vault at rest, and what is true of it."""

    folder: Path
    rows: dict[str, list[tuple[str, int]]]
    """Per person that is held, the action and reward of each row."""
    forgotten: tuple[str, ...]
    head: Head
    public_keys: tuple[str, ...]
    tables: dict[str, list[tuple[Any, ...]]]
    """The rows of every table."""
    log: dict[str, list[Any]]
    """Everything that was ingested."""

    @classmethod
    def create(cls, folder: Path, seed: int) -> "Target":
        """Make the vault, with a backup from before the last request."""
        draw = random.Random(seed)
        log = [
            (draw.choice(ACTIONS), draw.randint(0, 1), f"user-{draw.randrange(PEOPLE)}", f"r{row}")
            for row in range(ROWS)
        ]
        columns = dict(
            zip(("action", "reward", "user", "id"), map(list, zip(*log, strict=True)), strict=True)
        )
        url = f"sqlite:///{folder}/vault.db"
        gone = ("user-1", "user-2", "user-3", "user-4", "user-5")
        with Vault.create(url, Configuration(actions=ACTIONS)) as vault:
            vault.ingest(columns, user="user", id="id")
            vault.forget(users=["user-1"]).certificate.save(folder / "certificate.json")
            vault.rotate_digest_key()
            vault.forget(users=["user-2", "user-3", "user-4"])
            vault.rotate_signing_key()
            vault.forget(users=["nobody-here"])
            vault.back_up(folder / "yesterday.db")
            vault.forget(users=["user-5"])
            head, public_keys = vault.head, tuple(vault.public_keys())
        rows: dict[str, list[tuple[str, int]]] = {}
        for action, reward, user, _ in log:
            if user not in gone:
                rows.setdefault(user, []).append((action, reward))
        return cls(folder, rows, gone, head, public_keys, dump(folder / "vault.db"), columns)

    @property
    def keyring(self) -> Keyring:
        """The true keys."""
        return Keyring.read(self.folder / "vault.db.keys")

    def copy(self, folder: Path) -> "Copy":
        """A copy of the vault, to be attacked."""
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir()
        for name in ("vault.db", "vault.db.keys", "vault.db.keys.head", "certificate.json"):
            shutil.copy(self.folder / name, folder / name)
        return Copy(self, folder)


@dataclass(frozen=True)
class Copy:
    """A copy of the target that was, or will be, changed."""

    target: Target
    folder: Path

    @property
    def path(self) -> Path:
        """The file of the database."""
        return self.folder / "vault.db"

    @property
    def keys(self) -> Path:
        """The file of the keys."""
        return self.folder / "vault.db.keys"

    @property
    def pin(self) -> Path:
        """The file of the pinned head."""
        return self.folder / "vault.db.keys.head"

    def open(self, **options: Any) -> Vault:
        """Open it."""
        return Vault.open(f"sqlite:///{self.path}", timeout=5, **options)

    def verdict(self, what: str, victim: str, *, search: bool = False) -> Trial:
        """Forget somebody, then verify: whether something false was signed, or a change passed unnoticed.

        Both are done on the changed files, the forgetting on a copy of them. With `search`, the request
        searches the whole vault; if it finds something, it stays done, and nothing is signed.
        """
        spare = Copy(self.target, self.folder.with_name(f"{self.folder.name}-spare"))
        if spare.folder.exists():
            shutil.rmtree(spare.folder)
        shutil.copytree(self.folder, spare.folder)
        forgotten = spare._forget(what, victim, search=search)
        if forgotten.verdict is Verdict.MISSED:
            return forgotten
        return self._verify(what)

    def verdict_of_ingesting_again(self, what: str, record: str) -> Trial:
        """Ingest the same log again, then forget one of its records: nothing comes back or stays behind."""
        try:
            with self.open() as vault:
                vault.ingest(self.target.log, user="user", id="id")
                vault.forget(records=[record])
        except ArmnesiaError as error:
            refused = str(error)
        except Exception as error:
            return Trial(what, Verdict.MISSED, f"{type(error).__name__}: {error}")
        else:
            refused = ""
        ring = self.target.keyring
        with closing(sqlite3.connect(self.path)) as connection:
            owners = [owner for (owner,) in connection.execute("SELECT owner FROM record NOT INDEXED")]
            ids = [id_ for (id_,) in connection.execute("SELECT identity FROM record NOT INDEXED")]
        false = [f"{user} is back" for user in self.target.forgotten if ring.owner_digest(user) in owners]
        false += ["a row is there twice"] if len(set(ids)) < len(ids) else []
        if not refused and ring.record_identity("id", record) in ids:
            false.append("the certificate is signed, and the record is there")
        if false:
            return Trial(what, Verdict.MISSED, "; ".join(false))
        return Trial(what, Verdict.REFUSED if refused else Verdict.NO_EFFECT, refused)

    def _forget(self, what: str, victim: str, *, search: bool) -> Trial:
        try:
            with self.open() as vault:
                done = vault.forget(users=[victim], search=search)
        except ArmnesiaError as error:
            return Trial(what, Verdict.REFUSED, str(error))
        except Exception as error:
            return Trial(what, Verdict.MISSED, f"forget: {type(error).__name__}: {error}")
        false = "; ".join(self.false_claims(victim, done.certificate))
        return Trial(what, Verdict.MISSED if false else Verdict.NO_EFFECT, false)

    def false_claims(self, victim: str, certificate: Certificate) -> list[str]:
        """What is not true of a certificate, by the tables alone, read without any index."""
        rows, owner = self.target.rows[victim], self.target.keyring.owner_digest(victim)
        with closing(sqlite3.connect(self.path)) as connection:
            try:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            except sqlite3.DatabaseError:  # the request wrote where a damaged page told it to
                return self._false_claims_by_bytes(victim)
            try:
                (left,) = connection.execute(
                    "SELECT count(*) FROM record NOT INDEXED WHERE owner = ?", (owner,)
                ).fetchone()
            except sqlite3.DatabaseError:  # a page with rows of others is damaged: look at the bytes
                left = self.path.read_bytes().count(owner)
            ((statistics,),) = connection.execute("SELECT statistics FROM decision NOT INDEXED").fetchall()
        found = []
        kind = certificate.body["entry"]["kind"]
        if kind != "forget":
            found.append(f"the certificate says {kind!r} of somebody with {len(rows)} rows")
        if left:
            found.append(f"{left} rows are left")
        if certificate.searched:  # the list has the person, in its table and in its index
            copies = self.path.read_bytes().count(owner) - (2 if self._is_listed(victim) else 0)
            found += [f"{copies} copies of the digest are left after a search"] if copies else []
        ((_, _, before, *_),) = self.target.tables["decision"]
        arms = zip(ACTIONS, arms_in(before), arms_in(statistics), strict=True)
        for label, (count_before, total_before, _), (count, total, _) in arms:
            own = [reward for action, reward in rows if action == label]
            true = (count_before - len(own), total_before - UNIT * sum(own))
            if (count, total) != true:
                found.append(f"the statistics of {label} are {(count, total)}, not {true}")
        return [*found, *certificate.verify(self.target.public_keys)]

    def _is_listed(self, victim: str) -> bool:
        """Whether the suppression list has the person, by the same digest as rows have."""
        owner = self.target.keyring.owner_digest(victim)
        with closing(sqlite3.connect(self.path)) as connection:
            listed = connection.execute("SELECT digest, kind FROM suppressed NOT INDEXED").fetchall()
        return listed.count((owner, "user")) == 1

    def _false_claims_by_bytes(self, victim: str) -> list[str]:
        """The same for a file that SQLite cannot read any more: the rows are gone, and nothing is decided."""
        data, ring = self.path.read_bytes(), self.target.keyring
        people = zip(self.target.log["id"], self.target.log["user"], strict=True)
        left = sum(ring.record_identity("id", id_) in data for id_, user in people if user == victim)
        found = [f"{left} rows are left"] if left else []
        try:
            with self.open() as vault:
                found.append(f"{vault.decide().action} is served from a file that cannot be read")
        except ArmnesiaError:
            pass
        return found

    def _verify(self, what: str) -> Trial:
        same = unchanged(self.path, self.target.tables)
        try:
            with self.open(accept="any") as vault:
                problems = vault.verify(self.target.head).problems
        except ArmnesiaError as error:
            return Trial(what, Verdict.REFUSED, str(error))
        except Exception as error:
            return Trial(what, Verdict.MISSED, f"verify: {type(error).__name__}: {error}")
        if problems:
            return Trial(what, Verdict.CAUGHT, problems[0])
        if same:
            return Trial(what, Verdict.NO_EFFECT)
        return Trial(what, Verdict.MISSED, "verify found nothing, and the tables are not what they were")


def dump(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of every table and the statements that made them, read without any index."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        made = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
        tables = [name for kind, name, *_ in made if kind == "table"]
        found = {name: connection.execute(f"SELECT * FROM {name} NOT INDEXED").fetchall() for name in tables}
    return {"sqlite_master": sorted(made), **{name: sorted(rows, key=repr) for name, rows in found.items()}}


def unchanged(path: Path, tables: dict[str, list[tuple[Any, ...]]]) -> bool:
    """Whether every value is what it was, and every index finds what is there."""
    try:
        if dump(path) != tables:
            return False
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    except (sqlite3.Error, UnicodeDecodeError):  # Python cannot read a message that quotes a damaged schema
        return False
