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
    Policy,
    Preview,
    UserType,
    Vault,
)
from armnesia.vault.ledger.certificate import Certificate
from tests.databases import fresh_place
from tests.vault.plain_vault import (
    PlainVault,
    Record,
    Request,
    columns_of,
    observed,
    statistics_of,
    vault_columns,
    without_ids,
    write_csv,
)

ACTIONS = ("A", "B", "C")
USERS = tuple(f"user-{name}" for name in ("ann", "bob", "cem", "dea", "eve"))
FACTS_OF_A_DELETION = {"unlearner", "learner", "penalty", "budget", "level", "released"}


@dataclass(frozen=True)
class Setting:
    """How a vault answers."""

    unlearner: str
    penalty: Penalty = "retained"
    epsilon: float = 0.0
    delta: float = 0.0
    learner: str = "lcb"
    options: dict[str, Any] = field(default_factory=dict)

    def configuration(self, mode: str, *, ids: bool) -> Configuration:
        return Configuration(
            actions=ACTIONS,
            user_type=UserType.TEXT,
            columns=vault_columns(ids=ids),
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
    """A batch; an id always means the same record."""
    rows = draw(
        st.lists(
            st.tuples(
                st.sampled_from(ACTIONS), st.sampled_from((0, 4, 4, 1)), st.sampled_from((*USERS, None))
            ),
            min_size=1,
            max_size=8,
        )
    )
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


user_requests = st.lists(st.sampled_from((*USERS, "user-nobody")), min_size=1, max_size=3, unique=True)


def certificate_of(vault: Vault, kind: str, name: Any) -> Certificate:
    """The certificate of one of the `users` or `records`."""
    return vault.certificate(users=[name]) if kind == "users" else vault.certificate(records=[name])


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

    @initialize(setting=st.sampled_from(SETTINGS), first=records(), ids=st.booleans())
    def create(self, setting: Setting, first: list[Record], ids: bool) -> None:
        self.ids = ids
        self.configuration = setting.configuration(self.mode, ids=ids)
        self.place = fresh_place(self.database, self.folder)
        # Two connections, as of two processes: what one does, the other must know.
        self.vaults = [self.place.create(self.configuration), self.place.open()]
        self.model = PlainVault(ACTIONS, managed=self.mode == "managed", frozen=setting.penalty == "frozen")
        self.served = self.stream().decision().action
        self.sent: list[tuple[Any, list[Record]]] = []
        self.levels: dict[int, tuple[Level, list[int]]] = {}
        self.compacted = 0
        self.asked: set[Request] = set()
        self.handed_out: list[Certificate] = []
        self.thefts: list[int] = []
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

    def fitted(self, batch: list[Record]) -> list[Record]:
        """The batch as this vault takes it in: with ids or without."""
        return batch if self.ids else without_ids(batch)

    @rule()
    def other_process(self) -> None:
        self.vaults.reverse()

    @rule()
    def reopen(self) -> None:
        self.vaults.pop(0).close()
        self.vaults.insert(0, self.place.open())

    @rule(batch=records(), as_file=st.booleans())
    def ingest(self, batch: list[Record], as_file: bool) -> None:
        batch = self.fitted(batch)
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
        sent = before[: len(before) // 2 + 1]
        known = {record.id for record in sent if record.id}  # perhaps corrected since
        self.ingest(sent + [record for record in batch if record.id not in known], False)

    def _ingest(self, source: Any, batch: list[Record]) -> None:
        if self.model.contradicts(batch):
            for dry_run in (True, False):
                with pytest.raises(VaultError, match="an id that the vault holds with another action"):
                    self._take_in(source, dry_run=dry_run)
            return
        would, expected = self._take_in(source, dry_run=True), self.model.ingest(batch)
        done = self._take_in(source)
        assert (would.added, would.already_there, would.suppressed) == expected
        assert (done.added, done.already_there, done.suppressed) == expected
        if done.added:
            self.served = self.stream().decision().action
        assert done.served == self.served

    def _take_in(self, source: Any, *, dry_run: bool = False) -> Ingested:
        with warnings.catch_warnings():  # rows without ids may be those that were forgotten by theirs
            warnings.filterwarnings("ignore", message="single records were forgotten here")
            return self.vault.ingest(source, dry_run=dry_run)

    @precondition(lambda self: any(record.id for record in self.model.records.values()))
    @rule(data=st.data(), others=records())
    def correct(self, data: st.DataObject, others: list[Record]) -> None:
        batch = data.draw(corrections(self.model), label="corrected")
        known = {record.id for record in batch}  # others are new rows, and some that are known or forgotten
        columns = columns_of(batch := batch + [record for record in others if record.id not in known])
        would = self.vault.ingest(columns, replace=True, dry_run=True)
        expected = self.model.correct(batch)
        done = self.vault.ingest(columns, replace=True)
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
            with pytest.raises(VaultError, match="holds for another user, or without one"):
                self.vault.ingest(columns, replace=True)

    @rule(batch=records(), wrong=st.sampled_from([{"action": "Z"}, {"quarters": 5}]))
    def ingest_what_is_wrong(self, batch: list[Record], wrong: dict[str, Any]) -> None:
        batch = self.fitted(batch)
        columns = columns_of([*batch, batch[0]._replace(**wrong)])
        source: Any = columns
        if self.mode == "external":
            source = str(self.folder / "wrong.csv")
            write_csv(Path(source), [*batch, batch[0]._replace(**wrong)])
        with pytest.raises(ArmnesiaError):
            self._take_in(source)

    @rule(names=user_requests)
    def forget_users(self, names: list[str]) -> None:
        self._forget(("users", tuple(sorted(names))))

    @rule(data=st.data())
    def forget_records(self, data: st.DataObject) -> None:
        ids = sorted({record.id for record in self.model.records.values() if record.id} | {"record-none"})
        names = data.draw(st.lists(st.sampled_from(ids), min_size=1, max_size=3, unique=True), label="ids")
        self._forget(("records", tuple(sorted(names))))

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def forget_again(self, data: st.DataObject) -> None:
        self._forget(data.draw(st.sampled_from(sorted(self.asked)), label="asked before"))

    def _forget(self, request: Request) -> None:
        kind, names = request
        new, release = self.model.new_names(request), None
        held = [self.model.records[identity] for identity in self.model.held(request)]
        if held:
            try:
                release, level = self._expected_release(held)
            except UnsupportedError as refusal:
                self._refuses(request, str(refusal))
                return
        exactly = kind == "records"  # the rows may have no ids
        would: Preview = self.vault.preview(**{kind: names}, exactly=exactly)
        counts = self.model.forget(request)
        done: Forgotten = self.vault.forget(**{kind: names}, exactly=exactly)  # type: ignore[arg-type]
        number = max(self.model.answered[kind, name] for name in names)
        if release is not None:  # noted before anything can fail, for the check of the ledger at the end
            self.levels[number] = (level, [counts.get(action, 0) for action in ACTIONS])
        self.asked.add(request)
        assert done.repeated == would.repeated == (not new)
        assert (done.entry, done.named) == (number, len(names))
        assert sorted(name for each in done.forgotten_before for name in each.names) == sorted(
            set(names) - set(new)
        )
        assert would.forgotten_before == len(names) - len(new)
        assert _nonzero(done.counts) == _nonzero(would.counts) == counts
        assert would.named == len(names)
        whose = {record.user if kind == "users" else record.id for record in held}
        assert would.held == done.held == len(whose)
        assert (done.release is None) == (would.release is None) == (release is None)
        if release is not None:
            assert done.release is not None
            assert would.release is not None
            np.testing.assert_array_equal(done.release.probabilities, release.probabilities)
            np.testing.assert_array_equal(would.release.probabilities, release.probabilities)
            assert release.probabilities[ACTIONS.index(done.served)] > 0
            assert self.vault.certificate(entry=number).entry.facts["released"] == done.served
            self.served = done.served
        assert done.served == self.served
        assert (done.certificate is not None) == (len(new or names) == 1)
        for name in names:
            self._certificate_is_good(certificate_of(self.vault, kind, name), kind, name)

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

    def _certificate_is_good(self, certificate: Certificate, kind: str, name: str) -> None:
        assert certificate.verify(self.vault.public_keys().keys) == []
        assert certificate.entry.number == self.model.answered[kind, name]
        assert certificate.person is not None
        assert (f"{certificate.person.role}s", certificate.person.text) == (kind, name)
        assert certificate.person.outcome == self.model.said[kind, name]
        self.handed_out.append(certificate)

    @rule(names=user_requests)
    def readmit(self, names: list[str]) -> None:
        if all(("users", name) in self.model.suppressed for name in names):
            assert self.vault.readmit(users=names).readmitted == len(names)
            self.model.readmit(("users", tuple(sorted(names))))
            for name in names:
                assert self.vault.certificate(users=[name]).summary()["later"][-1] == "readmit"
        else:
            with pytest.raises(VaultError, match="not on the suppression list"):
                self.vault.readmit(users=names)

    @precondition(lambda self: any(kind == "records" for kind, _ in self.model.suppressed))
    @rule(data=st.data())
    def readmit_record(self, data: st.DataObject) -> None:
        forgotten = sorted(name for kind, name in self.model.suppressed if kind == "records")
        name = data.draw(st.sampled_from(forgotten), label="forgotten record")
        self.vault.readmit(records=[name])
        self.model.readmit(("records", (name,)))

    @rule(which=st.sampled_from(["signing", "stolen"]), data=st.data())
    def rotate(self, which: str, data: st.DataObject) -> None:
        since = data.draw(st.integers(1, len(self.model.kinds)), label="since") if which == "stolen" else None
        self.vault.rotate_signing_key(compromised_since=since)
        if since is not None:
            self.thefts.append(len(self.model.kinds) + 1)
        self.model.note("signing_key")

    @rule()
    def old_certificates_are_valid(self) -> None:
        """All that were ever handed out, except those from before a stolen key was exchanged."""
        keys = self.vault.public_keys().keys
        for certificate in self.handed_out[-20:]:
            size = certificate.checkpoint.size
            stolen = any(size < rotation for rotation in self.thefts)
            assert bool(certificate.verify(keys)) == stolen

    @rule()
    def restore(self) -> None:
        done = Vault.restore(self.place.url, keys=self.place.keys)
        assert (done.replayed, done.rows_deleted, done.as_it_was) == (0, 0, True)
        self.model.note("restored")

    @precondition(lambda self: self.model.kinds.count("forget") > self.compacted)  # it takes long
    @rule()
    def compact(self) -> None:
        self.compacted = self.model.kinds.count("forget")
        self.model.note("compacted")
        assert self.vault.compact().entry == len(self.model.kinds)
        for kind, name in self.model.answered:
            certificate = certificate_of(self.vault, kind, name)
            assert "compacted" in certificate.summary()["later"]
            self._certificate_is_good(certificate, kind, name)

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
        """No id, no reward; counts only where the level makes them public; found or not is not told."""
        names_at_retained = set()
        for entry in self.vault.ledger().entries:
            assert not any(name in entry.payload.decode() for name in (*USERS, "record-"))
            own, facts = set(entry.facts), entry.facts
            if entry.kind == "correct":
                assert own == {"replaced"}
            if entry.kind == "forget":
                level, counts = self.levels.get(entry.number, (facts["level"], [0] * len(ACTIONS)))
                public = {"counts"} if Level.named(level).sees_shape else set()
                public |= {"sources"} if self.mode == "external" else set()
                assert own == FACTS_OF_A_DELETION | public
                assert facts["level"] == level
                assert facts.get("counts", counts) == counts
                names_at_retained |= {frozenset(own)} if level == Level.RETAINED else set()
        assert len(names_at_retained) <= 1


def _nonzero(counts: Any) -> dict[str, int]:
    return {action: count for action, count in counts.items() if count}
