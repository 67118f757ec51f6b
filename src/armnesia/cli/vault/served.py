"""What `decide` prints of a vault: the arm that it serves, or those of all its decisions."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from armnesia.cli.output import print_result, table
from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import counted
from armnesia.plotting import margins
from armnesia.vault import OPERATOR_ONLY, Served, ServedDecisions, Vault

_REASONS = {
    "default": "by default: there is no record to decide from",
    "learner": "decided by the learner, from all records",
    "release": "drawn, once, when records were last forgotten",
}
_SHOWN = 20
_NAME_AND_VALUE = re.compile(r"\s*([^=]+?)\s*=\s*(.*?)\s*", re.DOTALL)


def print_served(vault: Vault, where: Sequence[str] | None, as_json: bool, *, signed: bool) -> None:
    """Print the arm that the vault serves, or those of all its decisions; `where` names one of them."""
    if signed:
        if where:
            raise InvalidInputError("--signed prints all decisions; leave --where out")
        print_result(vault.signed_decisions().to_dict(), as_json=True)
        return
    by = vault.configuration.key_columns if vault.has_keys else ()
    if by and not where:
        found = vault.decisions(statistics=not as_json)
        print_result(found.to_dict() if as_json else {}, as_json, *([] if as_json else _lines(found)))
        return
    served = vault.decide(read_key(where, [column.name for column in by]) if where else None)
    print_result(served.to_dict(), as_json, f"Served: {served_text(served)}")


def read_key(given: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """The key of a decision, from texts such as country=DE,age=25; a comma may be part of a value.

    >>> read_key(["country=DE,page=a,b"], ["country", "page"])
    {'country': 'DE', 'page': 'a,b'}
    """
    ends = "|".join(re.escape(name) for name in names)
    key: dict[str, str] = {}
    for text in given:
        for part in re.split(rf",(?=\s*(?:{ends})\s*=)", text) if names else [text]:
            match = _NAME_AND_VALUE.fullmatch(part)
            if match is None or match[1] in key:
                raise InvalidInputError(
                    f"--where must name a decision, as in country=DE,age=25, each key once; got {text!r}"
                )
            key[match[1]] = match[2]
    return key


def _lines(served: ServedDecisions) -> list[Any]:
    """The decisions with the smallest margins, in a table."""
    if served.stream is None:
        return ["No decisions yet: rows bring them."]
    statistics = served.stream.statistics
    ahead, _ = margins(served.stream.decision())
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

    >>> from armnesia.vault import Head
    >>> served_text(Served("A", "learner", Head(1, "0" * 64)))
    'A (decided by the learner, from all records)'
    """
    if served.action is None:
        return "nothing yet: the vault has no actions before a log is ingested"
    return f"{served.action} ({_REASONS[served.by]})"
