"""A request with an erasure at the source, in a process of its own that is killed before one of its steps.

Run as `python -m tests.vault.interrupted_erasure KIND STEP URL KEYS`. It prints the number of its steps if it
is not killed.
"""

import sys

from armnesia.vault import Vault
from tests.logs.erasing.interrupted import STEPS, killing_before
from tests.logs.erasing.stores import name_of

ERASED = tuple(name_of(person) for person in (1, 2, 3))
VAULT_STEPS = (
    ("armnesia.vault.state.transaction.Transaction", "store"),
    ("armnesia.vault.state.erasure_run.ErasureRun", "_put"),
    ("armnesia.vault.state.erasure_run.ErasureRun", "_record"),
    ("armnesia.vault.state.erasure_run.ErasureRun", "purge"),
    ("armnesia.vault.vault", "erase_at_sources"),
    ("armnesia.vault.vault", "certificate_of_target"),
)


def main(kind: str, step: str, url: str, keys: str) -> None:
    called = killing_before(int(step), (*STEPS[kind], *VAULT_STEPS))
    with Vault.open(url, keys=keys) as vault:
        vault.forget(users=ERASED, erase_at_source=True, purge=True, ignore_retention=True)
    print(len(called))


if __name__ == "__main__":
    main(*sys.argv[1:])
