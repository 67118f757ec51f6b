"""The JSON of all answers of the API: as the OpenAPI document describes it, and as the client returns it.

The keys are those of the `to_dict()` of the vault's results; a test compares them.
"""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict  # pydantic needs it before Python 3.12


class Decision(TypedDict):
    """A decision and the arm that it serves."""

    id: str
    key: dict[str, str]
    action: Any
    by: str


class Decisions(TypedDict):
    """Some decisions, in the order in which they appeared."""

    by: list[str]
    head: str
    total: int
    decisions: list[Decision]
    next: int | None


class Arm(TypedDict):
    """An arm with its records."""

    action: Any
    count: int
    mean: float | None
    score: float | str | None
    interval: list[float]


class DecisionWithArms(Decision):
    """A decision with its arms."""

    head: str
    arms: list[Arm]
    confidence: float
    note: str


class DeletionSummary(TypedDict):
    """The main facts of a deletion."""

    sequence: int
    kind: str
    unlearner: str | None
    level: str | None
    budget: dict[str, Any] | None
    erasure: str
    searched: bool
    """Whether all of the vault was searched afterwards, and nothing found."""
    source: NotRequired[str]
    """Of an external vault: how far the rows are erased at the sources."""
    source_steps: NotRequired[str | None]
    """What is left to do there; None if nothing is."""


class TouchedDecision(TypedDict):
    """What a deletion did in one of many decisions."""

    key: dict[str, str]
    counts: dict[str, int]
    served_before: Any
    served: Any


class DeletionDone(DeletionSummary):
    """What a request did, with its certificate."""

    dry_run: Literal[False]
    repeated: bool
    named: int
    held: int
    records: int
    counts: dict[str, int]
    served_before: Any
    served: Any
    decisions: NotRequired[list[TouchedDecision]]
    """In a vault with key columns, as `decided_again`."""
    decided_again: NotRequired[int]
    head: str
    pending_because: str | None
    erasure_steps: str | None
    not_searched_because: str | None
    """None: the service does not search."""
    fallback_because: str | None
    may_be_without_user: bool
    successors: NotRequired[list[str]]
    """The ids of the vaults that succeeded this one, if any did: forget there as well."""
    certificate: dict[str, Any]


class DeletionPreview(TypedDict):
    """What a request would do."""

    dry_run: Literal[True]
    repeated: bool
    named: int
    held: int
    records: int
    counts: dict[str, int]
    served_before: Any
    not_held: list[str]
    unlearner: str | None
    fallback_because: str | None
    remark: str | None
    may_be_without_user: bool
    probabilities: dict[str, float] | None
    decisions: NotRequired[list[dict[str, Any]]]
    decided_again: NotRequired[int]
    branch: str | None
    guarantee: dict[str, Any] | None
    note: str


class LedgerPage(TypedDict):
    """Some entries of the ledger."""

    head: str
    entries: list[dict[str, Any]]
    next: int | None


class LedgerHead(TypedDict):
    """The head of the ledger."""

    head: str


class CertificateFile(TypedDict):
    """A certificate as its file has it."""

    body: dict[str, Any]
    signature: str
    opening: None


class CertificatesToReissue(TypedDict):
    """Ledger entries whose certificates are to be issued again."""

    head: str
    to_reissue: list[int]


class RecordsAdded(TypedDict):
    """What was done with the rows."""

    rows: int
    added: int
    already_there: int
    suppressed: int
    served: Any
    head: str
    user_column: str | None
    id_column: str | None
    actions_fixed: list[Any] | None
    user_type_fixed: str | None
    dry_run: bool
    replaced: int
    decisions: NotRequired[int]
    """In a vault with key columns."""
    erasure: NotRequired[str]
    """Where records were replaced."""


class Live(TypedDict):
    """Whether the process works."""

    status: str


class SourceErasure(TypedDict):
    """How far rows of forgotten people are erased at a source."""

    number: int
    state: str
    pending: int
    entry: int | None
    remains: list[str]
    due: str | None
    purge_pending: bool


class ErasingRun(TypedDict):
    """An erasure at all sources, begun by the service."""

    begun: str
    purge: bool
    state: Literal["running", "done", "failed"]
    ended: str | None
    problem: str | None
    source: int | None


class SourceErasures(TypedDict):
    """How far rows are erased at all sources, what is due there, and the last erasure of the service."""

    permitted: bool
    pending: int
    purges_pending: int
    sources: list[SourceErasure]
    dropped: list[dict[str, int]]
    deleted: list[dict[str, Any]] | None
    head: str
    last_run: ErasingRun | None


class SourcesDue(TypedDict):
    """What is left to do at the sources of an external vault."""

    may_erase: bool
    erasures_due: int
    """Requests whose rows may still lie at a source."""
    purges_due: int
    """Sources whose files or earlier versions still hold rows."""
    purge_from: str | None
    """From when on their retention allows to purge them all."""


class Verified(TypedDict):
    """The last verification by the service."""

    time: str
    holds: bool
    problems: int
    failure: str | None
    """Why it could not be finished, which counts as one that does not hold; as the last part of a `type`."""


class Health(TypedDict):
    """The state of the service and its vault."""

    status: str
    database: str
    keys: str
    """`ok`, `unreadable` if their file is gone or lacks some, or `unknown`."""
    pin: str
    """`ok`, `missing`, or `recreated` since the service started: then nobody knows what it said before."""
    pin_lag: int | None
    ledger_length: int | None
    pending_erasures: int | None
    oldest_pending_seconds: float | None
    sources: SourcesDue | None
    """None of a vault that holds its rows."""
    waiting: int
    verified: Verified | None
