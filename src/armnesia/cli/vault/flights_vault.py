"""A vault of the bundled flights, to be served."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from armnesia import datasets
from armnesia.vault import Configuration, Role, Vault


def vault_url(folder: str | Path) -> str:
    """The address of the vault in a folder."""
    return f"sqlite:///{folder}/vault.db"


def flights_configuration(confidence: float) -> Configuration:
    """The configuration of a vault of the bundled flights."""
    return Configuration(actions=datasets.flights().actions, confidence=confidence)


@dataclass(frozen=True)
class DemoVault:
    """A vault of the bundled log, and a token for it."""

    url: str
    token: str
    aircraft: tuple[str, ...]
    """Some that can be forgotten."""
    is_kept: bool

    def open(self) -> Vault:
        """Make a connection."""
        return Vault.open(self.url)

    def words(self, url: str) -> str:
        """How to use the service, which listens at a URL."""
        kept = "stays there" if self.is_kept else "is removed at the end"
        return (
            f"The bundled flights are served at {url}\n"
            f"Sign in with this token: {self.token}\n\n"
            f"Users are aircraft; forget {' or '.join(self.aircraft)}, for example:\n"
            f"  curl -H 'Authorization: Bearer {self.token}' --json"
            f' \'{{"users": ["{self.aircraft[0]}"]}}\''
            f" {url}/v1/deletions\n\n"
            f"The vault is {self.url} and {kept}. Ctrl-C ends the service."
        )


@contextmanager
def demo_vault(folder: Path | None) -> Iterator[DemoVault]:
    """Make a vault of the bundled log, or open that of an earlier demo in the same folder.

    Without a folder it is in a temporary one, which is removed.
    """
    with tempfile.TemporaryDirectory(prefix="armnesia-demo-") as temporary:
        place = Path(temporary if folder is None else folder).resolve()
        place.mkdir(parents=True, exist_ok=True)
        log = datasets.flights()
        if not (place / "vault.db").exists():
            with Vault.create(vault_url(place), flights_configuration(confidence=1 / len(log))) as vault:
                vault.ingest(datasets.flights_path(), **datasets.FLIGHTS_COLUMNS)
        with Vault.open(vault_url(place)) as vault:
            token = vault.create_token(Role.ADMIN, name="demo", days=1).text
        aircraft = tuple(str(each) for each in log.users(action="DL"))[:2]
        yield DemoVault(vault_url(place), token, aircraft, is_kept=folder is not None)
