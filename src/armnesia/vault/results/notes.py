"""What the operator is told not to publish, and which certificates are not signed."""

from collections.abc import Sequence

from armnesia.core.messages import counted, listed

SCREEN_ONLY = "For this screen only: together with the served arm, the probabilities reveal deleted rewards."
OPERATOR_ONLY = "For the operator only: published before and after a deletion, this reveals what was deleted."
_MOST_LISTED = 5


def withheld_note(entries: Sequence[int]) -> str:
    """Which certificates are withheld, by their ledger entries, and what to do.

    >>> withheld_note([3]).split(":")[0]
    '1 certificate is withheld, of ledger entries 3'
    """
    number = counted(len(entries), "certificate is", "certificates are")
    return (
        f"{number} withheld, of ledger entries {listed(entries, _MOST_LISTED)}: a search of the whole vault"
        " has found what was to be deleted; repair the vault, then run armnesia forget with the same names"
        " again"
    )
