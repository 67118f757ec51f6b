"""What a Delta log tells of people: texts that stand in it, and words that may name them."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from armnesia.logs.erasing.names_in_texts import texts_in

TOKEN = "armnesiaErasure"
"""By this name the commits of an erasure have the token of their plan."""
GOES_ON = "armnesiaErasureGoesOn"
"""By this name a commit says that another one of the same plan follows."""
_WORDS = {
    "mergePredicate",
    "predicate",
    "matchedPredicates",
    "notMatchedPredicates",
    "notMatchedBySourcePredicates",
}
"""What the commit of an erasure may say of its merge: columns and partitions; the rest might hold names."""
_NOTHING = (None, "", "[]", "true")
"""Predicates without any value."""

_OF_EMPTY = frozenset({"timestamp", "operation", "operationParameters", "engineInfo", "clientVersion"})
"""What the commit of deltalake that changes nothing says."""
_BOUNDS = ("minValues", "maxValues")
_OF_STATE = ("metaData", "txn", "domainMetadata", "add", "remove", "cdc")
_NO_TEXTS = ("id", "stats", "stats_parsed", "partitionValues_parsed", "deletionVector")
"""Values of such actions that name nobody, or that are read on their own."""

Actions = Sequence[dict[str, Any]]


def values_of_kind(actions: Actions, kind: str, name: str) -> list[Any]:
    """A value of all actions of a kind that have it.

    >>> values_of_kind([{"add": {"path": "a"}}, {"remove": {"path": "b"}}], "add", "path")
    ['a']
    """
    return [action[kind][name] for action in actions if name in action.get(kind, {})]


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


def says_nothing(actions: Actions) -> bool:
    """Whether a commit neither changes anything nor has a remark.

    >>> empty = {"operation": "WRITE", "operationParameters": {"mode": "Append", "partitionBy": "[]"}}
    >>> says_nothing([{"commitInfo": empty}]), says_nothing([{"commitInfo": {**empty, "note": "ann"}}])
    (True, False)
    """
    said = [action["commitInfo"] for action in actions if set(action) == {"commitInfo"}]
    parameters = [each.get("operationParameters") or {} for each in said]
    return (
        len(said) == len(actions)
        and all(_OF_EMPTY.issuperset(each) for each in said)
        and all({"mode", "partitionBy"}.issuperset(each) for each in parameters)
    )


def texts_of_state(actions: Iterable[dict[str, Any]]) -> Iterator[str]:
    """What a log says of the table and its files, also of removed ones, except statistics and remarks.

    >>> list(texts_of_state([{"txn": {"appId": "export-ann", "version": 1}}, {"commitInfo": {"a": "bob"}}]))
    ['export-ann']
    """
    for action in actions:
        for kind in _OF_STATE:
            for name, value in (action.get(kind) or {}).items():
                if name == "schemaString":
                    with suppress(ValueError):
                        yield from texts_in(json.loads(value))
                elif name not in _NO_TEXTS:
                    yield from texts_in(value)


def texts_of_remarks(actions: Actions, column: str | int | None) -> Iterator[str]:
    """What commits say of themselves, and the lowest and highest values of a column in their statistics.

    >>> stats = json.dumps({"numRecords": 12345, "minValues": {"user": "ann"}})
    >>> list(texts_of_remarks([{"add": {"path": "a", "stats": stats}}], "user"))
    ['ann']
    """
    for action in actions:
        said = action.get("commitInfo") or {}
        yield from texts_in({name: value for name, value in said.items() if name not in (TOKEN, GOES_ON)})
    yield from texts_of_statistics(actions, column)


def texts_of_statistics(actions: Iterable[dict[str, Any]], column: str | int | None) -> Iterator[str]:
    """The lowest and highest values of a column in files that were added or removed.

    >>> list(texts_of_statistics([{"remove": {"stats_parsed": {"maxValues": {"user": "bob"}}}}], "user"))
    ['bob']
    """
    for action in actions:
        for kind in ("add", "remove"):
            file = action.get(kind) or {}
            with suppress(ValueError, TypeError, AttributeError):
                written = json.loads(file.get("stats") or "{}")
                for stats in (written, file.get("stats_parsed") or {}):
                    bounds = (stats.get(name) or {} for name in _BOUNDS)
                    yield from (str(each[column]) for each in bounds if each.get(column) is not None)


def removed_with_statistics(actions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The removed files of which statistics are still there."""
    removed = (action.get("remove") or {} for action in actions)
    return [each for each in removed if each.get("stats") or each.get("stats_parsed")]
