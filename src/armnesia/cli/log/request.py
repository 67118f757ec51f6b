"""What the commands on a request share: the request on a log, and an unlearner with a budget for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, cast, get_args

import numpy as np
import typer

from armnesia.cli import options as opt
from armnesia.cli.names import Column, UsersFile, names_in
from armnesia.cli.parameters import with_options_of, with_parameters
from armnesia.core.errors import InvalidInputError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import LEARNERS, Decision, Learner
from armnesia.logs import Decisions, Log
from armnesia.privacy import Budget
from armnesia.unlearners import UNLEARNERS, Unlearner
from armnesia.unlearners.joint import Over, budget_of_each, request_of, rows_of

Rows = Annotated[str | None, typer.Option(help="Which rows to forget, from 1: 3,17,20.")]


@dataclass(frozen=True)
class LogRequest:
    """A deletion request on a log: the learner is bound to all the records, D."""

    learner: Learner
    statistics: ArmStatistics
    request: DeletionRequest
    decisions: Decisions | None = field(default=None, kw_only=True)
    """The decisions of --by; they are on the first axis of statistics and request."""

    @property
    def decision_before(self) -> Decision:
        """The decision π(D), made with all the records."""
        return self.learner.decide(self.statistics)

    def to_dict(self) -> dict[str, Any]:
        """Write as JSON holds it."""
        if self.decisions is not None:
            return {
                "by": [str(column) for column in self.decisions.columns],
                "learner": self.learner.to_dict(),
                "n_rows": self.decisions.n_rows,
                "request": {
                    "records": int(self.request.counts.sum()),
                    "touched": int((~self.request.is_empty).sum()),
                },
            }
        counts = self.request.counts.tolist()
        return {
            "learner": self.learner.to_dict(),
            "decision_before": self.decision_before.action,
            "request": {
                "records": sum(counts),
                "counts": dict(zip(self.statistics.actions, counts, strict=True)),
            },
        }


@dataclass(frozen=True)
class UnlearningCase(LogRequest):
    """A request on a log, with the unlearner and the budget that answer it."""

    unlearner: Unlearner
    budget: Budget
    over: Over = field(default="touched", kw_only=True)

    @property
    def remark(self) -> str:
        """What the unlearner says about this request; with --by, about the decisions that lose records."""
        statistics, request, budget = self.statistics, self.request, self.budget
        if self.decisions is not None:
            touched = np.flatnonzero(~request.is_empty)
            number = len(self.decisions) if self.over == "all" else len(touched)
            budget = budget_of_each(self.unlearner, budget, number, "best")
            statistics, request = rows_of(statistics, touched), request_of(request, touched)
        return self.unlearner.remark(self.learner, statistics, request, budget)

    def method_lines(self) -> list[str]:
        """Who answers, with the parameters in force, and what there is to say about this request."""
        remark = self.remark
        return [f"Unlearner: {self.unlearner.described}", *([remark] if remark else [])]

    def to_dict(self) -> dict[str, Any]:
        """Write as JSON holds it."""
        facts = {"unlearner": self.unlearner.name, **super().to_dict(), "budget": self.budget.to_dict()}
        return {**facts, "remark": self.remark or None}


@dataclass(frozen=True)
class RequestArguments:
    """A request on a log, as the options name it."""

    log: str
    users: list[str] | None
    rows: str | None
    source: opt.LogOptions
    learner: str | None
    parameters: Mapping[str, Any]
    by: list[str] | None = None

    def __post_init__(self) -> None:
        if bool(self.users) == (self.rows is not None):
            raise InvalidInputError(
                "name what to forget, by exactly one of --user (repeatable), --file and --rows"
            )

    def read(self, learner: type[Learner]) -> LogRequest:
        """Read the log and look the records up in it."""
        log = self.source.read(self.log, with_users=bool(self.users), by=self.by)
        if self.users and not log.has_users:
            raise InvalidInputError(
                "the log has no column 'user'; name the column of the users with --user-column, or use --rows"
            )
        if self.by:
            decisions = log.by(*self.by)
            bound = opt.make_learner(learner, self.parameters, decisions.pooled)
            return LogRequest(bound, decisions.statistics, self._request(decisions), decisions=decisions)
        statistics = log.statistics()
        bound = opt.make_learner(learner, self.parameters, statistics)
        return LogRequest(bound, statistics, self._request(log))

    def _request(self, log: Log | Decisions) -> DeletionRequest:
        if self.users:
            return log.request(users=self.users)
        try:
            numbers = [int(number) for number in (self.rows or "").split(",")]
        except ValueError:
            raise InvalidInputError(
                f"--rows must be whole numbers such as 3,17,20; got {self.rows!r}"
            ) from None
        return log.request(rows=numbers)


@with_parameters(UNLEARNERS, LEARNERS)
@with_options_of(opt.LogOptions, "source")
def request_arguments(
    log: opt.LogArgument,
    user: opt.Users = None,
    file: UsersFile = None,
    column: Column = None,
    rows: Rows = None,
    source: Any = None,
    by: opt.By = None,
    learner: opt.LearnerName = None,
    parameters: Any = None,
) -> RequestArguments:
    """The options of a command about a request on a log."""
    if file is not None and user:
        raise InvalidInputError("name people by one of --user (repeatable) and --file; got both")
    if column is not None and file is None:
        raise InvalidInputError(f"--column belongs to --file; got --column {column} alone")
    users = user
    if file is not None:
        users = [name for each in file for name in names_in(each, column, "--file", "person")]
    return RequestArguments(log, users, rows, source, learner, parameters, by)


@with_options_of(request_arguments, "request")
def read_request(
    request: RequestArguments,
    unlearner: opt.UnlearnerName = "rollback",
    epsilon: opt.Epsilon = None,
    delta: opt.Delta = None,
    gamma: opt.Gamma = None,
    over: opt.Over = "touched",
) -> UnlearningCase:
    """Read a request and what answers it; what can be checked without the log is checked before."""
    kind, learner = opt.chosen_kinds(unlearner, request.learner, request.parameters)
    method = opt.make_unlearner(kind, request.parameters)
    budget = opt.make_budget(epsilon, delta, gamma, needed=kind.needs_budget)
    checked = checked_over(over, request.by)
    on = request.read(learner)
    return UnlearningCase(
        on.learner, on.statistics, on.request, method, budget, decisions=on.decisions, over=checked
    )


def checked_over(over: str, by: list[str] | None) -> Over:
    """The value of --over, which is about the decisions of --by."""
    if over == "all" and not by:
        raise InvalidInputError("--over is about the decisions of --by, which was not given")
    if over not in get_args(Over):
        raise InvalidInputError(f"--over must be touched or all; got {over!r}")
    return cast(Over, over)
