"""Random histories of a vault, against a vault in plain Python; `make hard-test` runs many more."""

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

if TYPE_CHECKING:
    from tests.vault.vault_databases import DATABASES
    from tests.vault.vault_machine import VaultMachine
else:
    from vault_databases import DATABASES
    from vault_machine import VaultMachine

LONG = "ARMNESIA_HARD_TEST" in os.environ
SETTINGS = settings(
    max_examples=150 if LONG else 8,
    stateful_step_count=40 if LONG else 14,
    derandomize=not LONG,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("mode", ["managed", "external"])
@pytest.mark.parametrize("database", DATABASES)
def test_a_vault_is_what_the_plain_one_is(database: str, mode: str) -> None:
    machine = type("Machine", (VaultMachine,), {"database": database, "mode": mode})
    run_state_machine_as_test(machine, settings=SETTINGS)
