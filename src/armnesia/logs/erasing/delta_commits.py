"""What a Delta log tells of deleted rows: files that came later, and words that may name people."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import unquote

TOKEN = "armnesiaErasure"
"""By this name the commit of an erasure has the token of its plan."""
_WORDS = {"mergePredicate", "matchedPredicates", "notMatchedPredicates", "notMatchedBySourcePredicates"}
"""What the commit of an erasure may say of its merge; anything else might hold names."""
_NOTHING = (None, "", "[]", "true")
"""Predicates without any value."""

Actions = Sequence[dict[str, Any]]


def values_of_kind(actions: Actions, kind: str, name: str) -> list[Any]:
    """A value of all actions of a kind that have it.

    >>> values_of_kind([{"add": {"path": "a"}}, {"remove": {"path": "b"}}], "add", "path")
    ['a']
    """
    return [action[kind][name] for action in actions if name in action.get(kind, {})]


def new_files(commits: Iterable[Actions]) -> set[str]:
    """Files that commits have added, and that were not in the table before.

    A commit that restores an earlier version adds files that were; one that does not say what it is might.

    >>> written = [{"commitInfo": {"operation": "WRITE"}}, {"add": {"path": "day%3D1/a"}}]
    >>> restored = [{"commitInfo": {"operation": "RESTORE"}}, {"add": {"path": "b"}}]
    >>> new_files([written, restored])
    {'day=1/a'}
    """
    found: set[str] = set()
    for actions in commits:
        operations = values_of_kind(actions, "commitInfo", "operation")
        if operations and "RESTORE" not in (str(each).upper() for each in operations):
            paths = (path for kind in ("add", "cdc") for path in values_of_kind(actions, kind, "path"))
            found |= set(map(unquote, paths))
    return found


def words_that_may_name(actions: Actions) -> Iterator[str]:
    """What in a commit may name people whose rows are gone: predicates, and statistics of removed files.

    >>> commit = {"operationParameters": {"predicate": "user = 'ann'", "mode": "Append"}}
    >>> list(words_that_may_name([{"commitInfo": commit}]))
    ['predicate']
    """
    is_ours = bool(values_of_kind(actions, "commitInfo", TOKEN))
    for said in values_of_kind(actions, "commitInfo", "operationParameters"):
        if is_ours:
            yield from sorted(said.keys() - _WORDS)
        else:
            yield from sorted(name for name in said if "redicate" in name and said[name] not in _NOTHING)
    if any(values_of_kind(actions, "remove", "stats")):
        yield "statistics"
