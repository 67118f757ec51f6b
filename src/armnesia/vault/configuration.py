"""The public configuration of a vault, fixed when it is created, and the policy for requests."""

import json
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np

from armnesia.core.actions import checked_actions
from armnesia.core.arrays import BoolArray
from armnesia.core.errors import InvalidInputError, PolicyError, UnsupportedError, VaultError
from armnesia.core.identifiers import UserType
from armnesia.core.messages import listed
from armnesia.core.parameters import build, parameter_names
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import checked_reward_range
from armnesia.learners import LEARNERS, Learner
from armnesia.logs.keys import KeyColumn, checked_keys
from armnesia.privacy import Budget, Guarantee, Level
from armnesia.unlearners import UNLEARNERS, Rollback, Unlearner
from armnesia.unlearners.stream import Penalty, Stream
from armnesia.vault.arm_rules import ArmRule
from armnesia.vault.keys.canonical_json import canonical
from armnesia.vault.result import plain_fields

Beyond: TypeAlias = Literal["refuse", "rollback"]

MOST_DECISIONS, LARGEST_MOST_DECISIONS = 100_000, 10_000_000
"""How many decisions the keys of a vault may make by default, and at most."""

MANAGED, EXTERNAL = "managed", "external"
"""Where the records of a vault are: in its own tables, or at the sources they were ingested from."""

COLUMNS = ("action", "reward", "user", "id")
"""What the columns of a source are for."""

DEFAULT_CONFIDENCE = 0.001
"""The default τ. It is public configuration, and 1/N would reveal how many records were deleted."""


@dataclass(frozen=True)
class Policy:
    """The weakest guarantee that may answer a request.

    A request beyond it is refused, or answered by exact rollback, which has the strongest guarantee.

    >>> Policy(1.0, 1e-5, (Level.RETAINED,)).allows(Guarantee(0.0, 0.0, Level.RETAINED))
    True
    """

    max_epsilon: float
    max_delta: float
    levels: tuple[Level, ...]
    beyond: Beyond = "refuse"

    def __post_init__(self) -> None:
        meaningful_budget(self.max_epsilon, self.max_delta)
        if not self.levels:
            raise InvalidInputError(f"levels must name at least one of {', '.join(Level)}; got none")
        object.__setattr__(self, "levels", tuple(Level.named(level) for level in self.levels))
        if self.beyond not in get_args(Beyond):
            raise InvalidInputError(f"beyond must be 'refuse' or 'rollback'; got {self.beyond!r}")

    def allows(self, guarantee: Guarantee) -> bool:
        """Whether a request may be answered with this guarantee."""
        within = guarantee.epsilon <= self.max_epsilon and guarantee.delta <= self.max_delta
        return within and guarantee.level in self.levels

    def refusal(self, guarantee: Guarantee) -> PolicyError:
        """Say what was asked for and what the policy allows."""
        return PolicyError(
            f"the vault's policy allows up to epsilon = {self.max_epsilon:g}, delta = {self.max_delta:g} at"
            f" level {' or '.join(self.levels)}; this request would be answered with epsilon ="
            f" {guarantee.epsilon:g}, delta = {guarantee.delta:g} at level {guarantee.level}; armnesia policy"
            " shows and changes it"
        )

    def to_dict(self) -> dict[str, Any]:
        """The policy as JSON holds it."""
        return plain_fields(self)


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """The actions, the reward range, the learner with its fixed τ, and the default answer to requests.

    The default unlearner is exact rollback: a weaker guarantee has to be chosen.

    >>> Configuration(actions=("A", "B")).make_unlearner().name
    'rollback'
    """

    actions: tuple[Hashable, ...] | None
    reward_range: tuple[float, float] = (0.0, 1.0)
    learner: str = "lcb"
    confidence: float = DEFAULT_CONFIDENCE
    """τ, for learners that have one."""
    learner_options: Mapping[str, Any] = field(default_factory=dict)
    """Other parameters of the learner."""
    unlearner: str = Rollback.name
    unlearner_options: Mapping[str, Any] = field(default_factory=dict)
    """The parameters of the unlearner; as JSON they are called `options`."""
    epsilon: float = 0.0
    delta: float = 0.0
    penalty: Penalty = "retained"
    mode: str = MANAGED
    may_erase_at_source: bool = False
    """Whether rows of forgotten people may be deleted at the sources of an external vault."""
    user_type: UserType | None = None
    """How people are named; None: the first ingest that brings users fixes it."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """By role, as in `COLUMNS`, the columns of all sources; none: the first ingest fixes them. A later one
    may name the user's, where there is none yet."""
    by: tuple[str, ...] = ()
    """The key columns by which rows belong to decisions, such as "country" or "age:18,30,50"; none: all rows
    are of one decision."""
    most_decisions: int = MOST_DECISIONS
    """How many decisions the keys may make."""
    declared_decisions: int = 0
    """How many decisions were declared when the vault was created; then there are no others. 0: none was."""
    organisation: str | None = None
    """Whose vault it is, as certificates say it."""
    arms: tuple[ArmRule, ...] = ()
    """Which arms were added and retired, and where; a new vault offers all its actions."""
    policy: Policy = None  # type: ignore[assignment]
    """By default as strict as the default answer."""

    def __post_init__(self) -> None:
        vars(self).update(
            actions=None if self.actions is None else _text_or_number(checked_actions(self.actions)),
            reward_range=checked_reward_range(self.reward_range),
            user_type=None if self.user_type is None else UserType.named(self.user_type),
            by=self._checked_keys(),
        )
        if self.mode not in (MANAGED, EXTERNAL):
            raise InvalidInputError(f"mode must be {MANAGED!r} or {EXTERNAL!r}; got {self.mode!r}")
        if self.may_erase_at_source and self.mode == MANAGED:
            raise InvalidInputError(
                "may_erase_at_source (--may-erase-at-source) needs an external vault (--external): the rows"
                " of a managed vault are in the vault itself, where forget deletes them"
            )
        self._check_columns()
        self._check_limits()
        default = self.make_learner().default_action
        if default is not None and default not in (self.actions or ()):
            known = listed(self.actions) if self.actions else "the actions, which must be declared"
            raise InvalidInputError(f"default_action must be one of {known}; got {default!r}")
        level = self._level_of_an_example()
        if self.policy is None:  # it follows from the default answer
            allowed = tuple(list(Level)[: list(Level).index(level) + 1])
            vars(self)["policy"] = Policy(self.epsilon, self.delta, allowed)
        self._check_default_answer(level)

    def _checked_keys(self) -> tuple[str, ...]:
        """Refuse keys that cannot be read again from their text."""
        if isinstance(self.by, str):
            raise InvalidInputError(f"by must be a list of key columns; got the text {self.by!r}")
        columns = checked_keys(self.by) if self.by else ()
        for column in columns:
            if KeyColumn.parse(str(column)) != column:
                raise InvalidInputError(
                    "a vault needs key columns whose name does not end like edges, as in age:18,30;"
                    f" got {column.name!r}"
                )
        return tuple(map(str, columns))

    def _check_columns(self) -> None:
        """Refuse columns of which some that every source has are missing, or whose role is none."""
        roles = {"action", "reward"} if self.columns else set()
        if not roles <= self.columns.keys() <= {*COLUMNS} or not all(self.columns.values()):
            raise InvalidInputError(
                f"columns must name those of action and reward, and may name others of {', '.join(COLUMNS)};"
                f" got {dict(self.columns)!r}"
            )

    @property
    def may_have_ids(self) -> bool:
        """Whether rows may have ids: not if the first source had no id column."""
        return not self.columns or "id" in self.columns

    def _check_limits(self) -> None:
        """Refuse a limit that is none, and an unlearner that many decisions cannot have."""
        if type(self.most_decisions) is not int or not 1 <= self.most_decisions <= LARGEST_MOST_DECISIONS:
            raise InvalidInputError(
                f"most_decisions must be a whole number from 1 to {LARGEST_MOST_DECISIONS:,};"
                f" got {self.most_decisions!r}"
            )
        if self.by:
            check_joint(self.make_unlearner())

    @cached_property
    def key_columns(self) -> tuple[KeyColumn, ...]:
        """The key columns; none if all rows are of one decision."""
        return tuple(map(KeyColumn.parse, self.by))

    def _check_default_answer(self, level: Level) -> None:
        """Refuse a default answer that the policy does not allow."""
        if not self.policy.allows(Guarantee(self.epsilon, self.delta, level)):
            raise VaultError(
                f"the vault's default answer, {self.unlearner} with epsilon = {self.epsilon:g}, delta ="
                f" {self.delta:g} at level {level}, is beyond a policy of up to epsilon ="
                f" {self.policy.max_epsilon:g}, delta = {self.policy.max_delta:g} at level"
                f" {' or '.join(self.policy.levels)}; allow at least that"
            )

    def _level_of_an_example(self) -> Level:
        """Answer an example request, which refuses a configuration that could answer none; its level."""
        low = self.reward_range[0]
        held = ArmStatistics.from_rewards({"A": [low, low], "B": [low]}, reward_range=self.reward_range)
        one = DeletionRequest.from_rewards({"A": [low], "B": []}, reward_range=self.reward_range)
        learner = replace(self.make_learner(), default_action=None)  # the example has other actions
        stream = Stream(learner, held, self.penalty)
        release, _ = stream.forget(self.make_unlearner(), one, self.budget)
        return release.guarantee.level

    @property
    def budget(self) -> Budget:
        """The (ε, δ) of a request that does not ask for another."""
        return meaningful_budget(self.epsilon, self.delta)

    def make_learner(self) -> Learner:
        """The learner, with τ fixed."""
        possible = [name for name, kind in LEARNERS.items() if not kind.needs_squares]
        if self.learner not in possible:
            why = ", which needs the squares of rewards: a vault keeps counts and sums"
            raise InvalidInputError(
                f"learner must be one of {', '.join(possible)}; got {self.learner!r}"
                f"{why if self.learner in LEARNERS else ''}"
            )
        kind = LEARNERS[self.learner]
        has_confidence = "confidence" in parameter_names(kind)
        confidence = {"confidence": self.confidence} if has_confidence else {}
        return build(kind, {**confidence, **self.learner_options})

    def make_unlearner(self) -> Unlearner:
        """The unlearner of a request that does not ask for another."""
        return make_unlearner(self.unlearner, self.unlearner_options)

    def with_declared_decisions(self, number: int) -> Self:
        """Allow no decisions but so many that are declared; they need the actions."""
        if self.actions is None or not 1 <= number <= self.most_decisions:
            raise InvalidInputError(
                f"declared decisions need declared actions (--actions), and must be from 1 to"
                f" {self.most_decisions:,}, the vault's limit (--most-decisions); got {number:,}"
            )
        return replace(self, declared_decisions=number)

    def with_policy(self, **changes: Any) -> Self:
        """Change fields of the policy; refused if the default answer is then beyond it."""
        return replace(self, policy=replace(self.policy, **changes))

    def with_arm_rule(self, rule: ArmRule) -> Self:
        """Offer an arm, or offer it no longer, as a rule says; a new arm is offered nowhere else.

        >>> Configuration(actions=("A", "B")).with_arm_rule(ArmRule("D", offered=True)).actions
        ('A', 'B', 'D')
        """
        actions, rules = self.actions or (), self.arms
        if rule.arm not in actions:
            actions = _text_or_number(checked_actions((*actions, rule.arm)))
            rules = (*rules, ArmRule(rule.arm, offered=False, new_rows="refuse")) if rule.where else rules
        # Earlier rules that can hold no longer are left out; without a rule an arm is offered.
        kept = [each for each in rules if each.arm != rule.arm or not set(rule.where) <= set(each.where)]
        new = [rule] if rule.where or not rule.offered else []
        return replace(self, actions=actions, arms=(*kept, *new))

    def rules_at(self, key: Sequence[str]) -> dict[Hashable, ArmRule]:
        """By arm, the rule that holds in the decision with this key; an arm without one is offered."""
        values = {(column.name, own) for column, own in zip(self.key_columns, key, strict=True)}
        return {rule.arm: rule for rule in self.arms if values.issuperset(rule.where)}

    def offers(self, key: Sequence[str]) -> tuple[Hashable, ...]:
        """The actions that the decision with this key offers."""
        rules = self.rules_at(key)
        return tuple(arm for arm in self.actions or () if arm not in rules or rules[arm].offered)

    def offered(self, keys: Iterable[Sequence[str]]) -> BoolArray:
        """Of each decision with one of these keys, and each arm, whether it is offered."""
        actions, offers = self.actions or (), [set(self.offers(key)) for key in keys]
        rows = [[arm in own for arm in actions] for own in offers]
        return np.array(rows, dtype=bool).reshape(len(rows), len(actions))

    def refuses(self, key: Sequence[str]) -> frozenset[int]:
        """The places of the arms whose new rows the decision with this key refuses."""
        rules, actions = self.rules_at(key).values(), self.actions or ()
        refused = {rule.arm for rule in rules if not rule.offered and rule.new_rows == "refuse"}
        return frozenset(place for place, arm in enumerate(actions) if arm in refused)

    @property
    def learner_facts(self) -> dict[str, Any]:
        """What the ledger says of the learner."""
        return {"name": self.learner, "confidence": self.confidence, **self.learner_options}

    @cached_property
    def text(self) -> str:
        """The configuration as canonical JSON."""
        return canonical(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The configuration as JSON holds it."""
        written = plain_fields(self)
        written["options"] = written.pop("unlearner_options")
        return written

    @classmethod
    @lru_cache(maxsize=16)
    def from_text(cls, text: str) -> Self:
        """Read the canonical JSON of a sealed state."""
        return cls.from_dict(json.loads(text))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` returned."""
        read = dict(values)
        read["policy"] = Policy(**read["policy"])
        read["unlearner_options"] = read.pop("options")
        read["arms"] = tuple(map(ArmRule.from_dict, read["arms"]))
        return cls(**read)


def make_unlearner(name: str, options: Mapping[str, Any]) -> Unlearner:
    """The named unlearner with these options; an option that it does not have is refused."""
    if name not in UNLEARNERS:
        raise InvalidInputError(f"unlearner must be one of {', '.join(UNLEARNERS)}; got {name!r}")
    return build(UNLEARNERS[name], options)


def check_joint(unlearner: Unlearner) -> None:
    """Refuse an unlearner that cannot answer a request in many decisions without revealing how many."""
    if unlearner.needs_budget and not unlearner.level.sees_shape:
        raise UnsupportedError(
            f"{unlearner.name} at level {unlearner.level} cannot answer requests in many decisions: it would"
            " have to split its budget over those that a request touches, and that level conceals how many"
            " there are; use rollback, or an unlearner at level request_shape"
        )


@lru_cache(maxsize=64)
def meaningful_budget(epsilon: float, delta: float) -> Budget:
    """The budget; one that promises nothing is refused.

    >>> meaningful_budget(1.0, 1.0)
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: in a vault epsilon must be finite and delta below 1: anything else
    promises nothing; got epsilon = 1.0, delta = 1.0
    """
    budget = Budget(epsilon=epsilon, delta=delta)
    if math.isinf(epsilon) or delta == 1:
        raise InvalidInputError(
            "in a vault epsilon must be finite and delta below 1: anything else promises nothing;"
            f" got epsilon = {epsilon}, delta = {delta}"
        )
    return budget


def _text_or_number(actions: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    """Refuse labels that JSON does not preserve."""
    for action in actions:
        if not isinstance(action, str | int):
            raise InvalidInputError(f"an action of a vault must be text or a whole number; got {action!r}")
    texts = [str(action) for action in actions]
    if len(set(texts)) < len(texts):
        raise InvalidInputError(f"actions must differ in their text; got {listed(actions)}")
    return actions
