"""The tables of docs/ name the parameters of the vault's methods and the fields of its configuration."""

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

from armnesia.vault import Configuration, Vault

DOCS = Path(__file__).parents[2] / "docs"
METHODS = re.findall(
    r"`(?:Vault\.)?(\w+)\(([^)]*)\)`",
    "\n".join(
        line.split("|")[1]
        for line in (DOCS / "vault-python.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ),
)


@pytest.mark.parametrize(("method", "documented"), METHODS)
def test_a_method_has_the_documented_parameters(method: str, documented: str) -> None:
    parameters = inspect.signature(getattr(Vault, method)).parameters
    expected = {name for name in parameters if name not in {"self", "changes"}}
    assert {name for name in re.findall(r"\w+", documented) if name != "changes"} == expected


def test_every_public_method_is_documented() -> None:
    public = {name for name, _ in inspect.getmembers(Vault, inspect.isroutine) if not name.startswith("_")}
    assert public - {"close"} == {method for method, _ in METHODS}


def test_the_reference_names_exactly_the_fields_of_a_configuration() -> None:
    text = (DOCS / "vault-reference.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"(?m)^\| field .*\n(?:\|.*\n)+", text)
    named = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == {field.name for field in fields(Configuration)}
