"""Forgetting: one transaction from the request to the certificate."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from armnesia.core.errors import ArmnesiaError, UnsupportedError, VaultError
from armnesia.core.request import DeletionRequest
from armnesia.privacy import Budget, Guarantee, Level
from armnesia.unlearners import Release, Rollback, Unlearner
from armnesia.unlearners.stream import Stream
from armnesia.vault.configuration import Configuration, budget_of, unlearner_of
from armnesia.vault.keys.canonical_json import utc_now
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate import Certificate
from armnesia.vault.ledger.openings import Opening, committed
from armnesia.vault.operations.certificates import certificate_of, certify, storing, with_opening
from armnesia.vault.state.connection import Opened, appended
from armnesia.vault.state.records import Holding, Wanted, holding_of
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.suppression import Lines, exchanged, read_lines
from armnesia.vault.storage.database import Session


@dataclass(frozen=True)
class Asked:
    """What a request asks for beyond what the vault's configuration says; None: nothing."""

    unlearner: str | None = None
    options: Mapping[str, Any] | None = None
    epsilon: float | None = None
    delta: float | None = None

    def answer(self, configuration: Configuration) -> "Answer":
        """The answer that is asked for, not yet measured against the policy."""
        name = configuration.unlearner if self.unlearner is None else self.unlearner
        default = configuration.options if name == configuration.unlearner else {}
        epsilon = configuration.epsilon if self.epsilon is None else self.epsilon
        delta = configuration.delta if self.delta is None else self.delta
        return Answer.by(name, default if self.options is None else self.options, epsilon, delta)


@dataclass(frozen=True)
class Answer:
    """How a request is answered: by which unlearner, with which budget."""

    unlearner: Unlearner
    options: Mapping[str, Any]
    budget: Budget

    @classmethod
    def by(cls, name: str, options: Mapping[str, Any], epsilon: float, delta: float) -> "Answer":
        """The named unlearner with these options and this budget."""
        return cls(unlearner_of(name, options), options, budget_of(epsilon, delta))


@dataclass(frozen=True)
class Forgotten:
    """What came of a request, for the operator's eyes: the certificate is what may be handed out.

    `repeated`: the same request was answered before, and this is its certificate. Of the people or records
    `named` there were records of `held`. `counts` are the records of each arm that were deleted; `release`
    is the distribution that the arm was drawn from.
    """

    repeated: bool
    named: int
    held: int
    counts: Mapping[Hashable, int]
    served_before: Any
    served: Any
    release: Release | None
    hand_out: Callable[[], Certificate] = field(repr=False, compare=False)

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate; signed once more, with the state of erasure, when it is first looked at."""
        return self.hand_out()

    @property
    def records(self) -> int:
        """How many records were deleted."""
        return sum(self.counts.values())


@dataclass(frozen=True)
class Preview:
    """What a request would do, without doing it: for the screen, never for a file that is kept.

    `unlearner` is who would answer; None where nothing is held.
    """

    named: int
    held: int
    unlearner: str | None
    counts: Mapping[Hashable, int]
    served: Any
    release: Release | None
    repeated: bool


def forget(opened: Opened, wanted: Wanted, asked: Asked) -> Forgotten:
    """Find the rows, draw the arm, roll back, delete, note it in the ledger, certify it: all or nothing."""
    holding = holding_of(opened, wanted)
    with opened.writing() as session:
        before = opened.load(session)
        ring = opened.ring(before)
        answer = asked.answer(before.configuration)  # refused if it cannot be, whatever is held
        digests = _Digests.of(ring, wanted)
        lines = digests.read(session)
        known = digests.answered_before(lines)
        if known and holding.names_with_records(session):
            raise VaultError(
                "rows of whoever was forgotten by this request are in the vault again, by another way than"
                " armnesia's: run armnesia verify, and armnesia rebuild to take them out"
            )
        if not known:
            done = _forget(opened, session, before, holding, answer, digests, lines)
    if known:
        certificate, served = certificate_of(opened, wanted), before.served_action
        return Forgotten(True, len(wanted.names), 0, {}, served, served, None, lambda: certificate)
    opened.pin.write(done.state.head)
    erased = opened.database.erase()
    if erased:
        opened.erased_through = done.state.head.sequence

    def hand_out() -> Certificate:
        signed = done.stored.reissue(ring, erasure="complete", issued=utc_now()) if erased else done.stored
        return with_opening(opened, signed, wanted, done.opening)

    return Forgotten(
        False,
        len(wanted.names),
        done.held,
        {} if done.found is None else _by_action(done.found),
        before.served_action,
        done.state.served_action,
        done.release,
        hand_out,
    )


def preview(opened: Opened, wanted: Wanted, asked: Asked) -> Preview:
    """What the request would do now; nothing is written."""
    holding = holding_of(opened, wanted)
    with opened.reading() as session:
        state = opened.load(session)
        answer = asked.answer(state.configuration)
        ring = opened.ring(state)
        digests = _Digests.of(ring, wanted)
        repeated = digests.answered_before(digests.read(session))
        found = holding.found(session, state)
        held = 0 if found is None else holding.names_with_records(session)
    named, served = len(wanted.names), state.served_action
    if found is None:
        return Preview(named, held, None, {}, served, None, repeated)
    used, release, _ = _release(state, found, answer)
    return Preview(named, held, used.unlearner.name, _by_action(found), served, release, repeated)


class _Done(NamedTuple):
    """A request that was answered: `stored` is its certificate without the `opening`."""

    found: DeletionRequest | None
    held: int
    release: Release | None
    stored: Certificate
    opening: Opening
    state: State


def _forget(
    opened: Opened,
    session: Session,
    before: State,
    holding: Holding,
    answer: Answer,
    digests: "_Digests",
    lines: Lines,
) -> _Done:
    ring, wanted = opened.ring(before), holding.wanted
    found, rows = holding.taken(session, before)
    held = {bytes(owner if wanted.users else identity) for identity, owner, *_ in rows}
    promise = committed(ring, before, wanted, held)
    facts: dict[str, Any] = {"commitment": promise.root, "salt_key": before.digest_key}
    kind, release, state = "nothing_held", None, before
    if found is not None:
        used, release, later = _release(before, found, answer)
        released = release.draw()
        kind, facts = "forget", facts | _claims(before, found, release, used, released)
        served = later.statistics.actions.index(released)
        state = replace(before, stream=later, served=served, served_by="release")
    entry, state, to_ledger = appended(state, kind, **facts)
    certificate = certify(opened, ring, entry)
    after = digests.noted(lines, promise.openings, entry.sequence)
    tallies, to_lists = exchanged(ring, before.tallies.toggled(ring, "record", rows), lines, after)
    if promise.trees:
        tallies = tallies.toggled(ring, "tree", promise.trees)
    state = replace(state, tallies=tallies)
    to_trees = [("INSERT INTO tree (sequence, leaves) VALUES (?, ?)", tree) for tree in promise.trees]
    opened.store(session, before, state, to_ledger, storing(certificate), *to_lists, *to_trees)
    return _Done(found, len(held), release, certificate, promise.openings[0], state)


def _release(state: State, found: DeletionRequest, answer: Answer) -> tuple[Answer, Release, Stream]:
    """The release, within the policy, and the stream without the records.

    What the policy does not allow, or touches several arms where the unlearner knows one, is refused; or
    answered by exact rollback, if the policy says so. What else an unlearner cannot answer is refused: that
    may be for the rewards' sake, which must not choose who answers.
    """
    stream, policy = state.known_stream, state.configuration.requests
    try:
        release, later = stream.forget(answer.unlearner, found, answer.budget)
        if policy.allows(release.guarantee):
            return answer, release, later
        refusal: ArmnesiaError = policy.refusal(release.guarantee)
    except UnsupportedError as error:
        if answer.unlearner.several_arms or np.count_nonzero(found.counts) < 2:
            raise
        refusal = error
    if policy.beyond == "refuse":
        raise refusal
    exact = Answer.by(Rollback.name, {}, 0.0, 0.0)
    release, later = stream.forget(exact.unlearner, found, exact.budget)
    weakest = max(answer.unlearner.level, stream.level, key=list(Level).index)
    if policy.allows(Guarantee(answer.budget.epsilon, answer.budget.delta, weakest)):
        # Other requests are answered as asked, so that being answered by rollback tells of this one's shape.
        release = replace(release, guarantee=replace(release.guarantee, level=weakest))
    return exact, release, later


def _claims(
    state: State, found: DeletionRequest, release: Release, answer: Answer, released: Hashable
) -> dict[str, Any]:
    """What the ledger says of a deletion: no identifier, no reward, and counts only where they are public."""
    configuration, promise = state.configuration, release.guarantee
    learner = state.known_stream.learner
    facts = {
        "unlearner": {"name": answer.unlearner.name, **answer.options},
        "learner": {"name": learner.name, "confidence": configuration.confidence},
        "penalty": configuration.penalty,
        "budget": {"epsilon": promise.epsilon, "delta": promise.delta},
        "level": str(promise.level),
        "released": released,
    }
    return facts | ({"counts": list(found.counts.tolist())} if promise.level.sees_shape else {})


class _Digests(NamedTuple):
    """By what the lists know a request: the whole of it; and of each who is in it, themselves, their kind,
    and the request of them alone."""

    whole: bytes
    each: list[tuple[bytes, str, bytes]]

    @classmethod
    def of(cls, ring: Keyring, wanted: Wanted) -> "_Digests":
        whole = ring.request_digest(wanted.request)
        alone = (
            [whole] if len(wanted.names) == 1 else [ring.request_digest(w.request) for w in wanted.singly()]
        )
        people = zip(wanted.digests(ring), alone, strict=True)
        return cls(whole, [(person, kind, request) for (person, kind), request in people])

    def read(self, session: Session) -> Lines:
        """What the lists say of them."""
        digests = {self.whole, *(one for person, _, alone in self.each for one in (person, alone))}
        return read_lines(session, list(digests))

    def answered_before(self, lines: Lines) -> bool:
        """Whether the same request was answered, and nobody in it was readmitted since."""
        return self.whole in lines.request and all(lines.keeps_out(person) for person, *_ in self.each)

    def noted(self, lines: Lines, openings: list[Opening], sequence: int) -> Lines:
        """Everyone is kept out from now on, and it is noted by which entry the request was answered.

        As a whole, and for each who is in it; whoever was forgotten before keeps the certificate of that
        time.
        """
        answered, suppressed = dict(lines.request), dict(lines.suppressed)
        opening = str(openings[0]) if len(openings) == 1 else ""
        answered[self.whole] = (self.whole, sequence, opening)
        for (person, kind, alone), own in zip(self.each, openings, strict=True):
            if not lines.keeps_out(person):
                answered[alone] = (alone, sequence, str(own))
            suppressed[person] = (person, kind, sequence, None)
        return Lines(suppressed, answered)


def _by_action(found: DeletionRequest) -> dict[Hashable, int]:
    return dict(zip(found.actions, found.counts.tolist(), strict=True))
