"""Requests after others that were answered with noise: which decisions decide again, and which do not."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

import armnesia as am
from armnesia.unlearners import base, joint
from armnesia.vault import Configuration, Vault
from tests.databases import Place
from tests.vault.raw_vaults import change, values

ACTIONS, PAGES = ("A", "B", "C"), [f"p{number}" for number in range(12)]
COLUMNS: dict[str, Any] = {"user": "user", "id": "id"}
TILT: dict[str, Any] = {"unlearner": "tilt", "epsilon": 1.0, "delta": 1e-5}
WEAK: dict[str, Any] = {"max_epsilon": 1.0, "max_delta": 1e-5, "levels": ("retained", "request_shape")}
Row = tuple[str, str, int, str, str]
"""(id, action, reward, user, page)"""


def log_of(rows: Sequence[Row]) -> dict[str, list[Any]]:
    names = ("id", "action", "reward", "user", "page")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def drawn(number: int, chance: random.Random, first: int = 0, users: int = 10) -> list[Row]:
    return [
        (
            f"r{row}",
            chance.choice(ACTIONS),
            chance.randrange(2),
            f"u{chance.randrange(users)}",
            chance.choice(PAGES),
        )
        for row in range(first, first + number)
    ]


def created(place: Place, **policy: Any) -> Vault:
    vault = place.create(Configuration(actions=ACTIONS, by=("page",), confidence=0.1))
    vault.change_policy(**(policy or WEAK))
    return vault


def served(vault: Vault) -> dict[str, tuple[Any, str]]:
    found = vault.decisions()
    each = zip(found.keys, found.actions, found.chosen_by, strict=True)
    return {key["page"]: (action, by) for key, action, by in each}


def of_the_learner(
    rows: Sequence[Row], page: str | None, offered: Sequence[str] = ACTIONS
) -> tuple[Any, str]:
    """What a learner decides that has never seen anything but these rows and these arms."""
    rewards: dict[str, list[int]] = {arm: [] for arm in offered}
    for _, arm, reward, _, own in rows:
        if page in (None, own) and arm in rewards:
            rewards[arm].append(reward)
    if not any(rewards.values()):
        return offered[0], "default"
    found = am.LCB(confidence=0.1).decide(am.ArmStatistics.from_rewards(rewards))
    return found.action, "learner"


@pytest.fixture(autouse=True)
def last_arm_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws with noise fall on the last arm that is possible, so that they are seen."""
    for module in (base, joint):
        monkeypatch.setattr(
            module, "draw_index", lambda row: max(arm for arm, chance in enumerate(row) if chance > 0)
        )


def test_what_is_served_does_not_say_which_decisions_rollback_touched(place: Place) -> None:
    chance = random.Random(3)
    rows = [*drawn(400, chance), *((f"q{n}", "A", 1, "q", PAGES[n]) for n in range(3))]
    with created(place) as vault:
        vault.ingest(log_of(rows), **COLUMNS)
        vault.forget(users=["u1"], **TILT)
        left = [row for row in rows if row[3] != "u1"]
        before = served(vault)
        released = {page for page, (_, by) in before.items() if by == "release"}
        assert len(released) >= 10
        assert any(before[page] != of_the_learner(left, page) for page in released - set(PAGES[:3]))
        plan = vault.preview(users=["q"])
        done = vault.forget(users=["q"])
        left = [row for row in left if row[3] != "q"]
        assert vault.certificate(entry=done.entry).entry.facts["level"] == "retained"
        assert served(vault) == {page: of_the_learner(left, page) for page in before}
        assert done.decided_again == plan.decided_again == len(released - set(PAGES[:3]))
        assert done.to_dict()["decided_again"] == plan.to_dict()["decided_again"] == done.decided_again
        assert len(done.decisions or ()) == 3
        assert vault.verify().problems == ()
        assert vault.forget(users=["u2"]).decided_again == 0


def test_arms_released_under_an_earlier_policy_are_decided_again(place: Place) -> None:
    """Also if the configuration was made anew from the ledger."""
    rows = [*drawn(400, random.Random(3)), ("q0", "A", 1, "q", PAGES[0])]
    with created(place) as vault:
        vault.ingest(log_of(rows), **COLUMNS)
        vault.forget(users=["u1"], **TILT)
        vault.change_policy(max_epsilon=0.0, max_delta=0.0, levels=("retained",))
        assert vault.verify().problems == ()
        before = vault.configuration
        state = values(vault, "SELECT configuration FROM vault")[0][0]
        change(vault, "UPDATE vault SET configuration = ?", state.replace("request_shape", "retained"))
    with place.open(checked=False) as vault:
        Vault.restore(place.url, keys=place.keys, as_it_is=True)
    with place.open() as vault:
        assert vault.configuration == before
        vault.change_policy(**WEAK)
        vault.forget(users=["u2"], **TILT)
        vault.change_policy(max_epsilon=0.0, max_delta=0.0, levels=("retained",))
        assert "release" in {by for _, by in served(vault).values()}
        vault.forget(users=["q"])
        left = [row for row in rows if row[3] not in ("u1", "u2", "q")]
        assert served(vault) == {page: of_the_learner(left, page) for page in PAGES}
        assert vault.verify().problems == ()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(8))
def test_after_any_history_rollback_leaves_what_a_learner_decides_that_saw_the_other_rows_only(
    sqlite_place: Place, seed: int
) -> None:
    """Random ingests, corrections, requests with noise and without, arms and policies."""
    chance = random.Random(seed)
    with created(sqlite_place) as vault:
        rows = drawn(150, chance, users=40)
        vault.ingest(log_of(rows), **COLUMNS)
        offered, pages, gone = {page: list(ACTIONS) for page in PAGES}, {row[4] for row in rows}, set[str]()
        for step in range(25):
            user = f"u{chance.randrange(40)}"
            match chance.choice(["ingest", "correct", "tilt", "tilt", "rollback", "arm", "policy"]):
                case "ingest":
                    more = [
                        row for row in drawn(20, chance, 1000 * (step + 1), users=40) if row[3] not in gone
                    ]
                    vault.ingest(log_of(more), **COLUMNS)
                    rows, pages = [*rows, *more], pages | {row[4] for row in more}
                case "correct" if rows:
                    at = chance.randrange(len(rows))
                    rows[at] = (*rows[at][:2], 1 - rows[at][2], *rows[at][3:])
                    vault.ingest(log_of([rows[at]]), **COLUMNS, replace=True)
                case "arm":
                    page, arm = chance.choice(PAGES), chance.choice(ACTIONS)
                    if arm not in offered[page]:
                        vault.add_arm(arm, {"page": page})
                        offered[page] = [each for each in ACTIONS if each in (*offered[page], arm)]
                    elif len(offered[page]) > 1:
                        vault.retire_arm(arm, {"page": page})
                        offered[page].remove(arm)
                case "policy":
                    vault.change_policy(max_epsilon=0.0, max_delta=0.0, levels=("retained",))
                    vault.change_policy(**WEAK, beyond=chance.choice(["refuse", "rollback"]))
                case "tilt" | "rollback" as kind:
                    done = vault.forget(users=[user], **(TILT if kind == "tilt" else {}))
                    rows, gone = [row for row in rows if row[3] != user], gone | {user}
                    if kind == "rollback" and done.records:
                        expected = {page: of_the_learner(rows, page, offered[page]) for page in pages}
                        assert served(vault) == expected
        vault.forget(records=[rows[0][0]])
        expected = {page: of_the_learner(rows[1:], page, offered[page]) for page in pages}
        assert served(vault) == expected
        assert vault.verify().problems == ()


# Records of retired arms.

KEYS = pytest.mark.parametrize("by", [(), ("page",)], ids=["one decision", "many decisions"])


def _user(row: int) -> str:
    return "u1" if row < 12 else f"u{row}"


CLOSE: list[Row] = [
    (f"r{page}-{row}", "AB"[row % 2], row % 2 if row < 12 else row // 2 % 2, _user(row), page)
    for page in PAGES
    for row in range(60)
]
"""A and B are as good as each other, except that B is better with the records of u1."""
LATE: list[Row] = [(f"late-{page}", "C", 1, "late", page) for page in PAGES]
"""A user who has seen arm C alone."""
LEFT = [row for row in CLOSE if row[3] != "u1"]


def after_a_release(place: Place, by: tuple[str, ...], **answer: Any) -> Vault:
    """A vault that serves what a request with noise released, and has retired arm C."""
    vault = place.create(Configuration(actions=ACTIONS, confidence=0.1, by=by, **answer))
    vault.ingest(log_of([*CLOSE, *LATE]), **COLUMNS)
    vault.change_policy(**WEAK)
    vault.retire_arm("C")
    vault.forget(users=["u1"], **TILT)
    found = vault.decisions()
    assert (set(found.actions), set(found.chosen_by)) == ({"B"}, {"release"})
    assert of_the_learner(LEFT, PAGES[0] if by else None, "AB") == ("A", "learner")
    return vault


@KEYS
def test_a_request_for_records_of_a_retired_arm_alone_decides_again_by_the_others(
    place: Place, by: tuple[str, ...]
) -> None:
    """Its records have no influence: the arm is certain."""
    with after_a_release(place, by, **TILT) as vault:
        plan, done = vault.preview(users=["late"]), vault.forget(users=["late"])
        after = vault.decisions()
        assert (set(after.actions), set(after.chosen_by)) == ({"A"}, {"release"})
        assert done.records == plan.records == len(LATE)
        assert plan.release is not None
        chances = plan.release.probabilities.reshape(-1, 3).tolist()
        assert chances == [[1.0, 0.0, 0.0]] * len(after.actions)
        assert done.certificate is not None
        assert done.certificate.verify(vault.public_keys().keys) == []
        assert vault.verify().problems == ()


@KEYS
def test_rollback_decides_again_also_where_only_a_retired_arm_lost_records(
    place: Place, by: tuple[str, ...]
) -> None:
    """At level retained the served arm is that of the other records, whatever was released before."""
    with after_a_release(place, by) as vault:
        vault.forget(users=["late"])
        assert set(vault.decisions().actions) == {"A"}
