"""How a source of an external vault was ingested, in words, and the commands that do it again or drop it."""

import shlex
from collections.abc import Mapping
from typing import Any

_DEFAULTS = {"action": "action", "reward": "reward"}
"""Columns that the command line takes without being told."""
_ROLES = ("action", "reward", "user", "id")


def source_name(address: Mapping[str, Any]) -> str:
    """The location and the table of a source.

    >>> source_name({"source": "sqlite:///logs.db", "table": "clicks"})
    'sqlite:///logs.db#clicks'
    """
    table = address["table"]
    return str(address["source"]) if table is None else f"{address['source']}#{table}"


def ingest_command(address: Mapping[str, Any]) -> str:
    """The command that ingests a source as before, as a shell reads it.

    >>> print(ingest_command({"source": "sqlite:///my logs.db", "table": "clicks", "action": "arm",
    ...     "reward": "reward", "user": "who", "id": None, "where": ["country = 'DE'"]}))
    armnesia ingest 'sqlite:///my logs.db' --table clicks --action-column arm --user-column who
    --where 'country = '"'"'DE'"'"''
    """
    options = [("--table", address["table"])]
    columns = [(role, address[role]) for role in _ROLES]
    options += [(f"--{role}-column", name) for role, name in columns if name != _DEFAULTS.get(role)]
    options += [("--where", condition) for condition in address["where"]]
    options += [("--delimiter", address.get("delimiter"))]
    words = [word for option in options if option[1] is not None for word in option]
    # A column called `user` would be taken for the user's if none is named.
    nobody = [] if address["user"] else ["--no-user"]
    return shlex.join(["armnesia", "ingest", address["source"], *words, *nobody])


def rebuild_command(address: Mapping[str, Any]) -> str:
    """The command that drops a source, as a shell reads it.

    >>> print(rebuild_command({"source": "sqlite:///logs.db", "table": "clicks"}))
    armnesia rebuild --without 'sqlite:///logs.db#clicks'
    """
    return shlex.join(["armnesia", "rebuild", "--without", source_name(address)])


def move_command(address: Mapping[str, Any], place: str) -> str:
    """The command that counts a source at another place, as a shell reads it.

    >>> print(move_command({"source": "/logs/*.csv", "table": None}, "/new/*.csv"))
    armnesia rebuild --moved '/logs/*.csv' '/new/*.csv'
    """
    return shlex.join(["armnesia", "rebuild", "--moved", source_name(address), place])


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """In which columns and conditions a source differs from what it was.

    >>> old = {"action": "arm", "reward": "won", "user": None, "id": "id", "where": []}
    >>> differences(old, {**old, "user": "who", "where": ["age >= 18"]})
    "the user column is 'who' and was none, the conditions are 'age >= 18' and were none"
    """
    found = [
        f"the {role} column is {_named(now[role])} and was {_named(before[role])}"
        for role in _ROLES
        if before[role] != now[role]
    ]
    old, new = (" and ".join(each["where"]) for each in (before, now))
    if old != new:
        found.append(f"the conditions are {_named(new)} and were {_named(old)}")
    return ", ".join(found)


def _named(name: str | None) -> str:
    return repr(name) if name else "none"
