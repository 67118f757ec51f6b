"""The arm that a vault serves, in words."""

from armnesia.vault import Served

_REASONS = {
    "default": "by default: there is no record to decide from",
    "learner": "decided by the learner, from all records",
    "release": "drawn, once, when records were last forgotten",
}


def served_text(served: Served) -> str:
    """The served arm, and why it is served.

    >>> from armnesia.vault import Head
    >>> served_text(Served("A", "learner", Head(1, "0" * 64)))
    'A (decided by the learner, from all records)'
    """
    if served.action is None:
        return "nothing yet: the vault has no actions before a log is ingested"
    return f"{served.action} ({_REASONS[served.by]})"
