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
    """The main facts of a deletion, as its certificate has them."""

    entry: int
    kind: str
    time: str
    vault: str
    organisation: str | None
    outcome: None
    """Of no person: this summary is opened for nobody."""
    level: str
    budget: dict[str, Any]
    unlearner: dict[str, Any]
    released: Any
    later: list[str]
    """The kinds of later entries that concern it, such as `compacted` or `erased`."""


class TouchedDecision(TypedDict):
    """What a deletion did in one of many decisions."""

    key: dict[str, str]
    counts: dict[str, int]
    served_before: Any
    served: Any


class ForgottenBefore(TypedDict):
    """Those of a request who were forgotten before, by this entry."""

    entry: int
    time: str
    names: list[str]


class DeletionDone(TypedDict):
    """What a request did, with its certificate."""

    dry_run: Literal[False]
    repeated: bool
    entry: int
    named: int
    held: int
    forgotten_before: list[ForgottenBefore]
    records: int
    counts: dict[str, int]
    served_before: Any
    served: Any
    decisions: NotRequired[list[TouchedDecision]]
    """In a vault with key columns, as `decided_again`."""
    decided_again: NotRequired[int]
    head: str
    fallback_because: str | None
    may_be_without_user: bool
    certificate: "CertificateFile | None"
    """If the entry is about one name; of several each has its own."""


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
    forgotten_before: int
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
    """The head of the ledger, and the same signed, to be kept elsewhere."""

    head: str
    checkpoint: str


class CertificateFile(TypedDict):
    """A certificate as its file has it."""

    envelope: dict[str, Any]
    proof: str
    opening: list[dict[str, Any]]
    later: list[dict[str, Any]]


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
    without_user: NotRequired[int]
    dry_run: bool
    replaced: int
    decisions: NotRequired[int]
    """In a vault with key columns."""


class Live(TypedDict):
    """Whether the process works."""

    status: str


class SourceErasure(TypedDict):
    """What is to be erased at a source."""

    id: str
    to_erase: bool
    to_purge: bool


class ErasingRun(TypedDict):
    """An erasure at all sources, begun by the service."""

    begun: str
    purge: bool
    state: Literal["running", "done", "failed"]
    ended: str | None
    problem: str | None
    source: str | None


class SourceErasures(TypedDict):
    """What is to be erased at all sources, and the last erasure of the service."""

    permitted: bool
    sources: list[SourceErasure]
    head: str
    last_run: ErasingRun | None


class SourcesDue(TypedDict):
    """What is left to do at the sources of an external vault."""

    may_erase: bool
    erasures_due: int
    """Sources where rows of forgotten people may still lie."""
    purges_due: int
    """Sources whose files or earlier versions still hold rows."""


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
    ledger_length: int | None
    sources: SourcesDue | None
    """None of a vault that holds its rows."""
    waiting: int
    verified: Verified | None
