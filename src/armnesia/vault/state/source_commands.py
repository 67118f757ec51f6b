"""How a source of an external vault was ingested, in words, and the commands that do it again or drop it."""

import shlex
from collections.abc import Mapping
from typing import Any

from armnesia.logs import source_name

_DEFAULTS = {"action": "action", "reward": "reward"}
"""Columns that the command line takes without being told."""


def ingest_command(address: Mapping[str, Any]) -> str:
    """The command that ingests a source as before, as a shell reads it.

    >>> print(ingest_command({"location": "sqlite:///my logs.db", "table": "clicks", "ordered_by": "day",
    ...     "columns": {"action": "arm", "reward": "reward", "user": "who", "id": None},
    ...     "where": ["country = 'DE'"]}))
    armnesia ingest 'sqlite:///my logs.db' --table clicks --action-column arm --user-column who
    --where 'country = '"'"'DE'"'"'' --ordered-by day
    """
    options = [("--table", address["table"])]
    options += [
        (f"--{role}-column", name)
        for role, name in address["columns"].items()
        if name is not None and name != _DEFAULTS.get(role)
    ]
    options += [("--where", condition) for condition in address.get("where", ())]
    options += [("--ordered-by", address.get("ordered_by"))]
    words = [word for option in options if option[1] is not None for word in option]
    # A column called `user` would be taken for the user's if none is named.
    nobody = [] if address["columns"].get("user") else ["--no-user"]
    return shlex.join(["armnesia", "ingest", address["location"], *words, *nobody])


def rebuild_command(address: Mapping[str, Any]) -> str:
    """The command that drops a source, as a shell reads it.

    >>> print(rebuild_command({"location": "sqlite:///logs.db", "table": "clicks"}))
    armnesia rebuild --without 'sqlite:///logs.db#clicks'
    """
    return shlex.join(["armnesia", "rebuild", "--without", source_name(address)])


def move_command(address: Mapping[str, Any], place: str) -> str:
    """The command that counts a source at another place, as a shell reads it.

    >>> print(move_command({"location": "/logs/*.csv", "table": None}, "/new/*.csv"))
    armnesia rebuild --moved '/logs/*.csv' '/new/*.csv'
    """
    return shlex.join(["armnesia", "rebuild", "--moved", source_name(address), place])


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """In which columns and conditions a source differs from what it was.

    >>> old = {"columns": {"user": None, "id": "id"}}
    >>> differences(old, {"columns": {"user": "who", "id": "id"}, "where": ["age >= 18"]})
    "the user column is 'who' and was none, the conditions are 'age >= 18' and were none"
    """
    found = [
        f"the {role} column is {_named(now['columns'].get(role))} and was {_named(name)}"
        for role, name in before["columns"].items()
        if name != now["columns"].get(role)
    ]
    old, new = (" and ".join(each.get("where", ())) for each in (before, now))
    if old != new:
        found.append(f"the conditions are {_named(new)} and were {_named(old)}")
    return ", ".join(found)


def _named(name: str | None) -> str:
    return repr(name) if name else "none"
