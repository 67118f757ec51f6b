"""Random histories of a vault beside a vault in plain Python: after every step both hold the same."""

import shutil
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from armnesia import Budget, DeletionRequest, Rollback
from armnesia.core.errors import ArmnesiaError, UnsupportedError, VaultError
from armnesia.privacy import Level
from armnesia.unlearners import Release
from armnesia.unlearners.stream import Penalty, Stream
from armnesia.vault import (
    Configuration,
    Forgotten,
    Ingested,
    LedgerCopy,
    Policy,
    Preview,
    UserType,
    Vault,
)
from armnesia.vault.ledger.certificate import Certificate
from armnesia.vault.storage import tables
from tests.databases import fresh_place
from tests.vault.plain_vault import (
    PlainVault,
    Record,
    Request,
    columns_of,
    has_ids,
    observed,
    statistics_of,
    write_csv,
)

ACTIONS = ("A", "B", "C")
USERS = tuple(f"user-{name}" for name in ("ann", "bob", "cem", "dea", "eve"))
LEDGER_OF_A_DELETION = {"unlearner", "learner", "penalty", "budget", "level", "released"}
LEDGER_OF_ALL = {"schema", "sequence", "previous", "vault", "kind", "time", "code"}


@dataclass(frozen=True)
class Setting:
    """How a vault answers."""

    unlearner: str
    penalty: Penalty = "retained"
    epsilon: float = 0.0
    delta: float = 0.0
    learner: str = "lcb"
    options: dict[str, Any] = field(default_factory=dict)

    def configuration(self, mode: str) -> Configuration:
        return Configuration(
            actions=ACTIONS,
            user_type=UserType.TEXT,
            confidence=0.5,  # low, so that a few records decide
            unlearner=self.unlearner,
            penalty=self.penalty,
            epsilon=self.epsilon,
            delta=self.delta,
            learner=self.learner,
            mode=mode,
            unlearner_options=self.options,
            policy=Policy(1.0, 0.1, tuple(Level), beyond="rollback"),
        )


SETTINGS = (
    Setting("rollback"),
    Setting("rollback", "frozen"),
    Setting("frozen_rollback", "frozen"),
    Setting("gaussian", epsilon=1.0, delta=0.01),
    Setting("strict_adaptive", epsilon=1.0, delta=0.1),
    Setting("adaptive", "frozen", epsilon=1.0, delta=0.1),
    Setting("mixing", epsilon=1.0, delta=0.1),
    Setting("tilt", epsilon=0.5, delta=0.1),
    Setting("tilt", "frozen", epsilon=1.0, delta=0.01),
    Setting("tilt", epsilon=1.0, delta=0.01, options={"assumed_share": 0.2}),
    Setting("rollback", learner="kl_lcb"),
    Setting("imitation_rollback", learner="imitation"),
)


@st.composite
def records(draw: st.DrawFn) -> list[Record]:
    """A batch; an id, if there are ids, always means the same record."""
    rows = draw(
        st.lists(
            st.tuples(
                st.sampled_from(ACTIONS), st.sampled_from((0, 4, 4, 1)), st.sampled_from((*USERS, None))
            ),
            min_size=1,
            max_size=8,
        )
    )
    if not draw(st.booleans()):
        return [Record(*row) for row in rows]
    which = draw(st.lists(st.integers(1, 2), min_size=len(rows), max_size=len(rows)))
    return [
        Record(action, quarters, user, f"record-{action}{quarters}{user}{number}")
        for (action, quarters, user), number in zip(rows, which, strict=True)
    ]


@st.composite
def corrections(draw: st.DrawFn, model: PlainVault) -> list[Record]:
    """Records that are held, with another action or reward, or as they are."""
    ids = sorted(record.id for record in model.records.values() if record.id)
    chosen = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=4, unique=True))
    return [
        model.records[(id_,)]._replace(
            action=draw(st.sampled_from(ACTIONS)), quarters=draw(st.sampled_from((0, 1, 4)))
        )
        for id_ in chosen
    ]


def _issued_at(certificate: Certificate) -> int:
    """The number of the ledger's last entry when the certificate was signed."""
    return int(certificate.body["issued_at_head"].partition(":")[0])


user_requests = st.lists(st.sampled_from((*USERS, "user-nobody")), min_size=1, max_size=3, unique=True)


class VaultMachine(RuleBasedStateMachine):
    """The rules; subclasses say on which database, and where the rows are."""

    database: ClassVar[str]
    mode: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="armnesia-machine-"))
        self.vaults: list[Vault] = []

    def teardown(self) -> None:
        try:
            if self.vaults:
                self.ledger_tells_nothing_more()
        finally:
            for vault in self.vaults:
                vault.close()
            shutil.rmtree(self.folder)

    @initialize(setting=st.sampled_from(SETTINGS), first=records())
    def create(self, setting: Setting, first: list[Record]) -> None:
        self.configuration = setting.configuration(self.mode)
        self.place = fresh_place(self.database, self.folder)
        # Two connections, as of two processes: what one does, the other must know.
        self.vaults = [self.place.create(self.configuration), self.place.open()]
        self.model = PlainVault(ACTIONS, managed=self.mode == "managed", frozen=setting.penalty == "frozen")
        self.served = self.stream().decision().action
        self.sent: list[tuple[Any, list[Record]]] = []
        self.levels: dict[int, tuple[Level, list[int]]] = {}
        self.compacted = 0
        self.handed_out: list[Certificate] = []
        self.redrafted = 0  # so many of them are drafts again, which count as handed out at their own entry
        self.thefts: list[tuple[int, int]] = []
        self.ingest(first, False)

    @property
    def vault(self) -> Vault:
        return self.vaults[0]

    def stream(self) -> Stream:
        """The model as a stream of decisions."""
        pages = self.model.pages
        gone = np.array([sum(self.model.gone[page, action] for page in pages) for action in ACTIONS])
        configuration = self.configuration
        return Stream(
            configuration.make_learner(),
            self.model.statistics(),
            configuration.penalty,
            gone if self.model.frozen else None,
        )

    @rule()
    def other_process(self) -> None:
        self.vaults.reverse()

    @rule()
    def reopen(self) -> None:
        self.vaults.pop(0).close()
        self.vaults.insert(0, self.place.open())

    @rule(batch=records(), as_file=st.booleans())
    def ingest(self, batch: list[Record], as_file: bool) -> None:
        source: Any = columns_of(batch)
        if as_file:
            source = str(self.folder / f"{len(self.sent)}.csv")
            write_csv(Path(source), batch)
        if not self.model.contradicts(batch):
            self.sent.append((source, batch))
        self._ingest(source, batch)

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def ingest_again(self, data: st.DataObject) -> None:
        self._ingest(*data.draw(st.sampled_from(self.sent), label="sent before"))

    @precondition(lambda self: self.sent)
    @rule(data=st.data(), batch=records())
    def ingest_overlapping(self, data: st.DataObject, batch: list[Record]) -> None:
        _, before = data.draw(st.sampled_from(self.sent), label="sent before")
        if has_ids(before) == has_ids(batch):
            sent = before[: len(before) // 2 + 1]
            known = {record.id for record in sent if record.id}  # perhaps corrected since
            self.ingest(sent + [record for record in batch if record.id not in known], False)

    def _ingest(self, source: Any, batch: list[Record]) -> None:
        if self.model.contradicts(batch):
            with pytest.raises(VaultError, match="an id that the vault holds with another action"):
                self._take_in(source, batch)
            return
        expected = self.model.ingest(batch)
        done = self._take_in(source, batch)
        assert (done.added, done.already_there, done.suppressed) == expected
        if done.added:
            self.served = self.stream().decision().action
        assert done.served == self.served

    def _take_in(self, source: Any, batch: list[Record]) -> Ingested:
        with warnings.catch_warnings():  # rows without ids may be those that were forgotten by theirs
            warnings.filterwarnings("ignore", message="single records were forgotten here")
            return self.vault.ingest(source, user="user", id="id" if has_ids(batch) else None, other_ids=True)

    @precondition(lambda self: any(record.id for record in self.model.records.values()))
    @rule(data=st.data(), others=records())
    def correct(self, data: st.DataObject, others: list[Record]) -> None:
        batch = data.draw(corrections(self.model), label="corrected")
        if has_ids(others):  # new rows, and some that are known or forgotten
            known = {record.id for record in batch}
            batch += [record for record in others if record.id not in known]
        columns = columns_of(batch)
        would = self.vault.ingest(columns, user="user", id="id", other_ids=True, replace=True, dry_run=True)
        expected = self.model.correct(batch)
        done = self.vault.ingest(columns, user="user", id="id", other_ids=True, replace=True)
        assert (done.added, done.replaced, done.already_there, done.suppressed) == expected
        assert (would.added, would.replaced, would.already_there, would.suppressed) == expected
        if done.added or done.replaced:
            self.served = self.stream().decision().action
        assert done.served == self.served

    @precondition(lambda self: any(record.id for record in self.model.records.values()))
    @rule(data=st.data(), user=st.sampled_from(("user-nobody", None)))
    def correct_the_person(self, data: st.DataObject, user: str | None) -> None:
        batch = data.draw(corrections(self.model), label="corrected")
        if any(record.user != user for record in batch):
            columns = columns_of([record._replace(user=user) for record in batch])
            is_forgotten = ("users", user) in self.model.suppressed  # which is told first
            gets_one = user is not None and not is_forgotten and any(each.user is None for each in batch)
            refused = "in the vault without a user" if gets_one else "that the vault holds for another user"
            with pytest.raises(VaultError, match=refused):
                self.vault.ingest(columns, user="user", id="id", other_ids=True, replace=True)

    @rule(batch=records(), wrong=st.sampled_from([{"action": "Z"}, {"quarters": 5}]))
    def ingest_what_is_wrong(self, batch: list[Record], wrong: dict[str, Any]) -> None:
        columns = columns_of([*batch, batch[0]._replace(**wrong)])
        source: Any = columns
        if self.mode == "external":
            source = str(self.folder / "wrong.csv")
            write_csv(Path(source), [*batch, batch[0]._replace(**wrong)])
        with pytest.raises(ArmnesiaError):
            self._take_in(source, batch)

    @rule(names=user_requests)
    def forget_users(self, names: list[str]) -> None:
        self._forget(("users", tuple(sorted(names))))

    @rule(data=st.data())
    def forget_records(self, data: st.DataObject) -> None:
        ids = sorted({record.id for record in self.model.records.values() if record.id} | {"record-none"})
        names = data.draw(st.lists(st.sampled_from(ids), min_size=1, max_size=3, unique=True), label="ids")
        self._forget(("records", tuple(sorted(names))))

    @precondition(lambda self: self.model.answered)
    @rule(data=st.data())
    def forget_again(self, data: st.DataObject) -> None:
        self._forget(data.draw(st.sampled_from(sorted(self.model.answered)), label="asked before"))

    def _forget(self, request: Request) -> None:
        kind, names = request
        repeated, release = self.model.is_repeated(request), None
        held = [self.model.records[identity] for identity in self.model.held(request)]
        if held:
            try:
                release, level = self._expected_release(held)
            except UnsupportedError as refusal:
                self._refuses(request, str(refusal))
                return
        exactly = kind == "records"  # the rows may have no ids
        would: Preview = self.vault.preview(**{kind: names}, exactly=exactly)  # type: ignore[arg-type]
        counts = self.model.forget(request)
        done: Forgotten = self.vault.forget(**{kind: names}, exactly=exactly)  # type: ignore[arg-type]
        sequence = self.model.answered[request]
        if release is not None:  # noted before anything can fail, for the check of the ledger at the end
            self.levels[sequence] = (level, [counts.get(action, 0) for action in ACTIONS])
        assert done.repeated == would.repeated == repeated
        assert _nonzero(done.counts) == _nonzero(would.counts) == counts
        assert done.named == would.named == len(names)
        whose = {record.user if kind == "users" else record.id for record in held}
        assert would.held == len(whose)
        assert done.held == (0 if repeated else len(whose))
        assert done.certificate.body["sequence"] == sequence
        assert (done.release is None) == (would.release is None) == (release is None)
        if release is not None:
            assert done.release is not None
            assert would.release is not None
            np.testing.assert_array_equal(done.release.probabilities, release.probabilities)
            np.testing.assert_array_equal(would.release.probabilities, release.probabilities)
            assert release.probabilities[ACTIONS.index(done.served)] > 0
            assert done.certificate.body["entry"]["released"] == done.served
            self.served = done.served
        assert done.served == self.served
        self._certificate_is_good(done.certificate, names)
        for name in names:
            alone: Certificate = self.vault.certificate(**{kind: [name]})
            assert alone.body["sequence"] == self.model.answered[kind, (name,)]
            self._certificate_is_good(alone, (name,))

    def _expected_release(self, held: list[Record]) -> tuple[Release, Level]:
        stream, configuration = self.stream(), self.configuration
        request = DeletionRequest(
            statistics_of(ACTIONS, held), all(record.quarters in (0, 4) for record in held)
        )
        unlearner = configuration.make_unlearner()
        if not unlearner.several_arms and len({record.action for record in held}) > 1:
            # The policy says: then by rollback. That it is by rollback tells that it was several arms.
            release, _ = stream.forget(Rollback(), request, Budget(epsilon=0.0, delta=0.0))
            return release, unlearner.level
        release, _ = stream.forget(unlearner, request, configuration.budget)
        return release, release.guarantee.level

    def _refuses(self, request: Request, refusal: str) -> None:
        """What the rewards make impossible is refused: they must not choose who answers."""
        kind, names = request
        for answer in (self.vault.preview, self.vault.forget):
            with pytest.raises(UnsupportedError) as raised:
                answer(**{kind: names})  # type: ignore[arg-type]
            assert str(raised.value) == refusal

    def _certificate_is_good(self, certificate: Certificate, names: tuple[str, ...]) -> None:
        assert certificate.verify(self.vault.public_keys()) == []
        self.handed_out.append(certificate)
        if len(names) == 1:
            assert certificate.opening is not None
            kind = "users" if names[0].startswith("user-") else "records"
            said = self.model.said[kind, names]
            held = {} if said is None else {"held": said}
            assert certificate.opening["request"] == {kind: list(names), **held}
        text = certificate.text
        assert not any(name in text for name in (*USERS, "record-"))

    @rule(names=user_requests, erase=st.booleans())
    def readmit(self, names: list[str], erase: bool) -> None:
        request = ("users", tuple(sorted(names)))
        if all(("users", name) in self.model.suppressed for name in names):
            assert self.vault.readmit(users=names, erase=erase).readmitted == len(names)
            self.model.readmit(request, erase=erase)
        else:
            with pytest.raises(VaultError, match="not on the suppression list"):
                self.vault.readmit(users=names, erase=erase)

    @precondition(lambda self: any(kind == "records" for kind, _ in self.model.suppressed))
    @rule(data=st.data())
    def readmit_record(self, data: st.DataObject) -> None:
        forgotten = sorted(name for kind, name in self.model.suppressed if kind == "records")
        name = data.draw(st.sampled_from(forgotten), label="forgotten record")
        self.vault.readmit(records=[name])
        self.model.readmit(("records", (name,)))

    @rule(which=st.sampled_from(["signing", "stolen", "digest"]), data=st.data())
    def rotate(self, which: str, data: st.DataObject) -> None:
        if which == "digest":
            self.vault.rotate_digest_key()
        else:
            since = (
                data.draw(st.integers(1, len(self.model.kinds)), label="since") if which == "stolen" else None
            )
            self.vault.rotate_signing_key(compromised_since=since)
            if since is not None:
                self.thefts.append((since, len(self.model.kinds) + 1))
        self.model.note("rotate_digest" if which == "digest" else "rotate_signing")
        if which == "stolen":
            self.certificates_are_valid_against_the_ledger()

    def _is_refused(self, certificate: Certificate) -> bool:
        """Whether a stolen key signed it, since the theft and before the rotation."""
        return self._was_stolen(_issued_at(certificate))

    def _was_stolen(self, entry: int) -> bool:
        """Whether the key that signed at this entry was stolen by then."""
        return any(since <= entry < rotation for since, rotation in self.thefts)

    @rule()
    def certificates_are_valid_against_the_ledger(self) -> None:
        """All that were ever handed out, except those that a stolen key signed."""
        self.vault.export(self.folder / "export.json")
        ledger = LedgerCopy.read(self.folder / "export.json")
        keys = self.vault.public_keys()
        for certificate in self.handed_out[-20:]:
            problems = certificate.verify(keys, ledger=ledger)
            assert bool(problems) == self._is_refused(certificate), problems
        latest = {
            certificate.body["sequence"]: certificate.body["sequence"]
            if place < self.redrafted
            else _issued_at(certificate)
            for place, certificate in enumerate(self.handed_out)
        }
        assert self.vault.status().to_reissue == sum(map(self._was_stolen, latest.values()))

    @rule()
    def rebuild(self) -> None:
        assert not self.vault.rebuild().changed
        self.note_drafts()
        self.model.note("rebuild")

    def note_drafts(self) -> None:
        """A rebuild that deletes rows makes all certificates drafts, also if another source has the rows."""
        with self.vault._connection.reading() as transaction:
            bodies = tables.stream_certificate_bodies(transaction.session, 0)
            if not any("signing_key" in body for _, body in bodies):
                self.redrafted = len(self.handed_out)

    @precondition(lambda self: len(self.model.answered) > self.compacted)  # it takes long
    @rule()
    def compact(self) -> None:
        self.compacted = len(self.model.answered)
        assert self.vault.compact().complete
        assert self.vault.status().erasure == "complete"
        for request, sequence in self.model.answered.items():
            kind, names = request
            certificate: Certificate = self.vault.certificate(**{kind: names})
            assert certificate.body["sequence"] == sequence
            assert certificate.body["erasure"]["state"] == "complete"
            self._certificate_is_good(certificate, names)

    @rule()
    def verify(self) -> None:
        found = self.vault.verify()
        assert found.problems == ()
        assert found.records == len(self.model.records)
        assert found.entries == len(self.model.kinds)

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        if self.vaults:
            expected = self.model.expected()
            assert observed(self.vault) == expected
            assert self.vault.decide().action == self.served

    def ledger_tells_nothing_more(self) -> None:
        """No id, no reward; counts only where the level makes them public."""
        for entry in self.vault.ledger():
            assert not any(name in entry.text for name in (*USERS, "record-"))
            own = set(entry.fields) - LEDGER_OF_ALL
            if entry.kind == "correct":
                assert own == {"replaced"}
            request = {"commitment", "salt_key", "terms"}
            if self.mode == "external":
                request.add("sources")
                assert all(type(number) is int for number in entry.fields.get("sources", ()))
            if entry.kind == "nothing_held":
                assert own == request
            if entry.kind == "forget":
                level, counts = self.levels[entry.sequence]
                public = {"counts"} if level.sees_shape else set()
                assert own == request | LEDGER_OF_A_DELETION | public
                assert entry.fields["level"] == level
                assert entry.fields.get("counts", counts) == counts


def _nonzero(counts: Any) -> dict[str, int]:
    return {action: count for action, count in counts.items() if count}
