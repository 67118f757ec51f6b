"""What a vault is told once, at its set-up: the public configuration, and the policy for requests."""

import dataclasses
import json
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, Self, TypeAlias, get_args

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import checked_actions, checked_reward_range, listed
from armnesia.learners import LEARNERS, ConfidenceLearner, Learner
from armnesia.privacy import Budget, Guarantee, Level
from armnesia.unlearners import UNLEARNERS, Rollback, Unlearner
from armnesia.unlearners.stream import Penalty, Stream
from armnesia.vault.keys.canonical_json import canonical
from armnesia.vault.storage.schema import EXTERNAL, MANAGED

Beyond: TypeAlias = Literal["refuse", "rollback"]

DEFAULT_CONFIDENCE = 0.001
"""τ is part of the public configuration. 1/N would tell how many records were deleted."""


@dataclass(frozen=True)
class Policy:
    """The weakest promise that a request may be answered with.

    Beyond it a request is refused, or answered by exact rollback, which promises the most.

    >>> Policy(1.0, 1e-5, (Level.RETAINED,)).allows(Guarantee(0.0, 0.0, Level.RETAINED))
    True
    """

    max_epsilon: float
    max_delta: float
    levels: tuple[Level, ...]
    beyond: Beyond = "refuse"

    def __post_init__(self) -> None:
        budget_of(self.max_epsilon, self.max_delta)  # refuses what is none
        if not self.levels:
            raise InvalidInputError(f"levels must name at least one of {', '.join(Level)}; got none")
        object.__setattr__(self, "levels", tuple(Level.named(level) for level in self.levels))
        if self.beyond not in get_args(Beyond):
            raise InvalidInputError(f"beyond must be 'refuse' or 'rollback'; got {self.beyond!r}")

    def allows(self, promise: Guarantee) -> bool:
        """Whether a request may be answered with this promise."""
        within = promise.epsilon <= self.max_epsilon and promise.delta <= self.max_delta
        return within and promise.level in self.levels

    def refusal(self, promise: Guarantee) -> VaultError:
        """Say what was asked for and what would be allowed."""
        return VaultError(
            f"the vault's policy allows up to epsilon = {self.max_epsilon:g}, delta = {self.max_delta:g} at"
            f" level {' or '.join(self.levels)}; this request would be answered with epsilon ="
            f" {promise.epsilon:g}, delta = {promise.delta:g} at level {promise.level}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Write as JSON holds it."""
        return {**dataclasses.asdict(self), "levels": [str(level) for level in self.levels]}


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """The actions, the rewards' range, the learner with its fixed τ, how requests are answered by default.

    The default unlearner is exact rollback: everything weaker is chosen, never met by accident.

    >>> Configuration(actions=("A", "B")).unlearning().name
    'rollback'
    """

    actions: tuple[Hashable, ...] | None
    reward_range: tuple[float, float] = (0.0, 1.0)
    learner: str = "lcb"
    confidence: float = DEFAULT_CONFIDENCE
    unlearner: str = Rollback.name
    options: Mapping[str, Any] = field(default_factory=dict)
    epsilon: float = 0.0
    delta: float = 0.0
    penalty: Penalty = "retained"
    mode: str = MANAGED
    policy: Policy | None = None
    """As strict as the default answer, if none is given."""

    def __post_init__(self) -> None:
        if self.actions is not None:
            object.__setattr__(self, "actions", _text_or_number(checked_actions(self.actions)))
        object.__setattr__(self, "reward_range", checked_reward_range(self.reward_range))
        if self.mode not in (MANAGED, EXTERNAL):
            raise InvalidInputError(f"mode must be {MANAGED!r} or {EXTERNAL!r}; got {self.mode!r}")
        low = self.reward_range[0]
        held = ArmStatistics.from_rewards({"A": [low, low], "B": [low]}, reward_range=self.reward_range)
        one = DeletionRequest.from_rewards({"A": [low], "B": []}, reward_range=self.reward_range)
        example = Stream(self.learning(), held, self.penalty)
        unlearner = self.unlearning()
        unlearner.release(
            example.current_learner, held, one, self.budget
        )  # refuses what could answer no request
        promised = max(unlearner.level, example.level, key=list(Level).index)
        if self.policy is None:
            allowed = list(Level)[: list(Level).index(promised) + 1]
            object.__setattr__(self, "policy", Policy(self.epsilon, self.delta, tuple(allowed)))
        default = Guarantee(self.epsilon, self.delta, promised)
        if not self.requests.allows(default):
            raise VaultError(
                f"the vault's own answer, {unlearner.name} with epsilon = {self.epsilon:g}, delta ="
                f" {self.delta:g} at level {promised}, is beyond a policy of up to epsilon ="
                f" {self.requests.max_epsilon:g}, delta = {self.requests.max_delta:g} at level"
                f" {' or '.join(self.requests.levels)}; allow at least that"
            )

    @property
    def requests(self) -> Policy:
        """The policy; there always is one."""
        assert self.policy is not None
        return self.policy

    @property
    def budget(self) -> Budget:
        """The (ε, δ) of a request that does not ask for another."""
        return budget_of(self.epsilon, self.delta)

    def learning(self) -> Learner:
        """The learner, with τ fixed."""
        if self.learner not in LEARNERS:
            raise InvalidInputError(f"learner must be one of {', '.join(LEARNERS)}; got {self.learner!r}")
        kind = LEARNERS[self.learner]
        return kind(confidence=self.confidence) if issubclass(kind, ConfidenceLearner) else kind()

    def unlearning(self) -> Unlearner:
        """The unlearner of a request that does not ask for another."""
        return unlearner_of(self.unlearner, self.options)

    def with_actions(self, actions: tuple[Hashable, ...]) -> Self:
        """Declare the actions, as the first batch shows them; from then on they are fixed."""
        return replace(self, actions=actions)

    @cached_property
    def text(self) -> str:
        """The configuration as canonical JSON."""
        return canonical(self.to_facts())

    def to_facts(self) -> dict[str, Any]:
        """Write as JSON holds it."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        actions = None if self.actions is None else list(self.actions)
        plain = {"actions": actions, "reward_range": list(self.reward_range), "options": dict(self.options)}
        return {**values, **plain, "policy": self.requests.to_dict()}

    @classmethod
    @lru_cache(maxsize=16)
    def from_text(cls, text: str) -> Self:
        """Read the canonical JSON again."""
        return cls.from_facts(json.loads(text))

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        """Read what `to_facts` gave."""
        values = dict(facts)
        policy = dict(values.pop("policy"))
        policy["levels"] = tuple(policy["levels"])
        actions = None if values["actions"] is None else tuple(values["actions"])
        values |= {"actions": actions, "reward_range": tuple(values["reward_range"])}
        return cls(**{**values, "policy": Policy(**policy)})


def unlearner_of(name: str, options: Mapping[str, Any]) -> Unlearner:
    """The named unlearner with these options; what it does not have is refused."""
    if name not in UNLEARNERS:
        raise InvalidInputError(f"unlearner must be one of {', '.join(UNLEARNERS)}; got {name!r}")
    kind = UNLEARNERS[name]
    known: list[str] = [f.name for f in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    for option in options:
        if option not in known:
            raise InvalidInputError(f"{name} has no option {option!r}; it has {listed(known) or 'none'}")
    return kind(**options)


@lru_cache(maxsize=64)
def budget_of(epsilon: float, delta: float) -> Budget:
    """The budget, calibrated once; one that promises nothing is refused.

    >>> budget_of(1.0, 1.0)
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
    """Labels must survive being written as JSON."""
    for action in actions:
        if not isinstance(action, str | int):
            raise InvalidInputError(f"an action of a vault must be text or a whole number; got {action!r}")
    texts = [str(action) for action in actions]
    if len(set(texts)) < len(texts):
        raise InvalidInputError(f"actions must differ in their text; got {listed(actions)}")
    return actions
