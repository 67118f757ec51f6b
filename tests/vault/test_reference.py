"""docs/vault-python.md lists every method of `Vault`, its parameters, and the keys of its result."""

import inspect
import re
import shutil
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from armnesia.vault import Configuration, Vault, results
from armnesia.vault.operations import subject_requests, tokens

PAGE = (Path(__file__).parents[2] / "docs" / "vault-python.md").read_text(encoding="utf-8")
API = PAGE.split("\n## Python API\n", 1)[1].split("\n## ", 1)[0]
CELLS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in API.splitlines() if line[:2] == "| "]
ROWS = [cells for cells in CELLS[2:] if len(cells) == 3]  # the values that methods return have two
KEYS = {row[1].strip("`"): set(re.findall(r"`(\w+)`", row[2].partition(";")[0])) for row in ROWS if row[2]}
"""Without those that are not always there, which follow a semicolon."""
METHODS = [found for row in ROWS for found in re.findall(r"`(?:Vault\.)?(\w+)(?:\((.*?)\))?`", row[0])]


def test_every_method_is_listed() -> None:
    public = {name for name in vars(Vault) if not name.startswith("_")} | {"check_keys", "keys_path"}
    assert {name for name, _ in METHODS} == public - {"close"}  # which the text names


@pytest.mark.parametrize(("name", "listed"), [method for method in METHODS if method[1]])
def test_the_parameters_are_those_of_the_method(name: str, listed: str) -> None:
    given = inspect.signature(getattr(Vault, name)).parameters.values()
    parameters = [each for each in given if each.name not in ("self", "connection", "method")]
    names = [str(parameter).partition(":")[0] for parameter in parameters]
    assert [word for word in listed.split(", ") if word != "*"] == names
    keywords = [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
    assert listed.partition("*, ")[2].split(", ") == (keywords or [""])


def test_every_result_is_listed() -> None:
    rooms = (results, tokens, subject_requests)
    here = [
        kind
        for room in rooms
        for kind in vars(room).values()
        if getattr(kind, "__module__", "") == room.__name__
    ]
    elsewhere = {
        "Certificate",
        "PublicKeys",
        "SignedDecisions",
    }  # in the ledger's folder, because they are also read from files
    parts = {
        word
        for kind in here
        if is_dataclass(kind)
        for each in fields(kind)
        for word in re.findall(r"\w+", str(each.type))
    }
    listed = {kind.__name__ for kind in here if hasattr(kind, "to_dict")}
    bases = {base.__name__ for kind in here if isinstance(kind, type) for base in kind.__mro__[1:]}
    assert listed - parts - bases <= set(KEYS) - elsewhere <= listed


def test_the_keys_are_those_of_the_results(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/vault.db"
    found: list[Any] = []
    with Vault.create(url, Configuration(actions=("A", "B"))) as vault:
        log = {"action": ["A", "B"], "reward": [1, 0], "user": ["ann", "bob"]}
        found += [vault.ingest(log, user="user"), vault.decide(), vault.back_up(tmp_path / "backup.db")]
        found += [vault.preview(users=["ann"]), vault.forget(users=["ann"]), vault.certificate(users=["ann"])]
        found += [vault.readmit(users=["ann"]), vault.verify(), vault.check_ledger(vault.checkpoint())]
        found += [vault.status(), vault.change_policy(max_epsilon=1.0), vault.compact()]
        found += [vault.save_certificates(tmp_path / "certificates", users=["ann"])]
        found += [vault.arms(), vault.retire_arm("B"), vault.rotate_signing_key()]
        found += [vault.export(tmp_path / "export.jsonl"), vault.ledger(), vault.public_keys()]
        found += [vault.identity(), vault.decisions(), vault.signed_decisions(), vault.source_erasures()]
        found += [vault.create_token("reader"), vault.tokens(), vault.revoke_token(1)]
        times = ("2026-11-15T10:42:07.123456Z",) * 4
        asked = subject_requests.SubjectRequest("id", "pending", "controller", *times, "gdpr", users=("ann",))
        found += [vault.add_subject_request(asked, b"body")]
    shutil.copy(tmp_path / "backup.db", tmp_path / "vault.db")
    found += [Vault.restore(url)]
    assert {type(result).__name__: set(result.to_dict()) for result in found} == KEYS


def test_the_reference_names_exactly_the_fields_of_a_configuration() -> None:
    text = (Path(__file__).parents[2] / "docs" / "vault-reference.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"(?m)^\| field of `Configuration` .*\n(?:\|.*\n)+", text)
    named = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == {field.name for field in fields(Configuration)}
