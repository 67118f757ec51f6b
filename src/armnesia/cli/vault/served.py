"""What `decide` prints of a vault: the arm that it serves, or those of all its decisions."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from armnesia.cli.output import print_result, table
from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import counted, listed, shown
from armnesia.learners.penalty_warning import warn_of_a_dominating_penalty
from armnesia.plotting import margins
from armnesia.unlearners.stream import Stream
from armnesia.vault import OPERATOR_ONLY, Served, ServedDecisions, Vault

_REASONS = {
    "default": "by default: there is no record to decide from",
    "learner": "decided by the learner, from all records",
    "release": "drawn, once, when records were last forgotten",
}
_SHOWN = 20
_QUOTED = r"""'(?:[^']|'')*'|"(?:[^"]|"")*\""""
_ANOTHER_KEY = re.compile(r",\s*([^,=\s][^,=]*?)\s*=")


def print_served(vault: Vault, where: Sequence[str] | None, as_json: bool, *, signed: bool) -> None:
    """Print the arm that the vault serves, or those of all its decisions; `where` names one of them."""
    if signed:
        if where:
            raise InvalidInputError("--signed prints all decisions; leave --where out")
        print_result(vault.signed_decisions().to_dict(), as_json=True)
        return
    by = vault.configuration.key_columns
    if by and not where:
        found = vault.decisions(statistics=True)
        _warn(found.stream, keyed=True)
        print_result(found.to_dict() if as_json else {}, as_json, *([] if as_json else _lines(found)))
        return
    key = read_key(where, [column.name for column in by]) if where else None
    served = vault.decide(key, statistics=True)
    _warn(served.stream, keyed=bool(by))
    lines = [f"Served: {served_text(served)}"]
    if served.margin is not None:
        lines += [f"Margin: {served.margin:.6g} ahead of the next score", OPERATOR_ONLY]
    print_result(served.to_dict, as_json, *lines)


def _warn(stream: Stream | None, *, keyed: bool) -> None:
    """Warn of decisions in which mostly the counts choose the arm."""
    if stream is not None:
        found = stream.decision()
        which = slice(None) if keyed else 0
        reward_range = stream.statistics.reward_range
        warn_of_a_dominating_penalty(found.scores[which], found.no_data[which], reward_range)


def read_key(given: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """The key of a decision, from texts such as country=DE,age=25; a comma may be part of a value.

    A value with text such as ",b=" looks like another key, and stands in quotes.

    >>> read_key(["country=DE,page=a,b"], ["country", "page"])
    {'country': 'DE', 'page': 'a,b'}
    >>> read_key(['page="a,b=c"'], ["page"])
    {'page': 'a,b=c'}
    """
    key: dict[str, str] = {}
    for text in given:
        for name, value in _names_and_values(text, names):
            if name in key:
                raise _no_decision(text)
            key[name] = value
    return key


def key_in(vault: Vault, where: Sequence[str] | None) -> dict[str, str] | None:
    """The values of keys that --where gives, in this vault; None if it was not given."""
    if not where:
        return None
    return read_key(where, [column.name for column in vault.configuration.key_columns])


def equations(values: Mapping[str, str]) -> str:
    """Values of keys, to be read by people.

    >>> equations({"country": "DE", "age": "18..30"})
    'country=DE, age=18..30'
    """
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _names_and_values(text: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The parts of a text: each ends before the next of the names, or at the end of the text."""
    next_name = rf",(?=\s*(?:{'|'.join(map(re.escape, names))})\s*=)" if names else "(?!)"
    part = re.compile(rf"\s*([^=]+?)\s*=\s*(?:({_QUOTED})|(.*?))\s*(?:{next_name}|\Z)", re.DOTALL)
    at = 0
    while at < max(1, len(text)):
        match = part.match(text, at)
        if match is None:
            raise _no_decision(text)
        name, quoted, bare = match.groups()
        unknown = _ANOTHER_KEY.search(bare or "") if names else None
        if unknown is not None:
            raise InvalidInputError(
                f"the decisions of this vault have the keys {listed(names)}; got {unknown[1]!r} in"
                f' {shown(text)}: put a value that has such text in quotes, as in {name}="a,b=c"'
            )
        yield name, bare if quoted is None else quoted[1:-1].replace(2 * quoted[0], quoted[0])
        at = match.end()


def _no_decision(text: str) -> InvalidInputError:
    return InvalidInputError(
        f"--where must name a decision, as in country=DE,age=25, each key once; got {text!r}"
    )


def _lines(served: ServedDecisions) -> list[Any]:
    """The decisions with the smallest margins, in a table."""
    if served.stream is None:
        return ["No decisions yet: rows bring them."]
    statistics = served.stream.statistics
    decision = served.stream.decision()
    ahead, _ = margins(decision)
    closest = np.argsort(ahead, kind="stable")[:_SHOWN].tolist()
    rows = [
        [*served.keys[at].values(), served.actions[at], float(ahead[at]), int(statistics.total[at])]
        for at in closest
    ]
    title = f"{counted(len(served), 'decision')}, smallest margins first"
    more = len(served) - len(closest)
    return [
        table(title, [*served.keys[0], "served", "margin", "rows"], rows),
        *([f"{counted(more, 'more decision')}: --json prints the arms of all of them."] if more else []),
        f"Head of the ledger: {served.head}",
        OPERATOR_ONLY,
    ]


def served_text(served: Served) -> str:
    """The served arm, and why it is served.

    >>> from armnesia.vault.ledger.checkpoint import Checkpoint
    >>> served_text(Served("A", "learner", Checkpoint("armnesia/v-1", 1, bytes(32))))
    'A (decided by the learner, from all records)'
    """
    if served.action is None:
        return "nothing yet: the vault has no actions before a log is ingested"
    return f"{served.action} ({_REASONS[served.by]})"
