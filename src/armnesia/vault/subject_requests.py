"""What controllers ask the service for: requests to erase people, by OpenDSR."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Callback:
    """A status that a controller is still to be told, at one of the addresses of a request."""

    url: str
    status: str
    attempts: int = 0
    after: str = ""
    """The time of the next attempt."""


@dataclass(frozen=True)
class SubjectRequest:
    """A request of a controller to erase people, by OpenDSR; times are as `utc_now` writes them."""

    id: str
    """The UUID that the controller gave it."""
    status: str
    """"pending", "in_progress", "completed" or "cancelled"."""
    controller: str
    received: str
    submitted: str
    due: str
    """When it has to be completed."""
    begin: str
    """When it will be begun; until then it can be cancelled."""
    regulation: str
    body_digest: str = ""
    """A keyed digest of the body of the request, by which the same one is recognised."""
    urls: tuple[str, ...] = ()
    """Where the controller wants to be told of changes."""
    callbacks: tuple[Callback, ...] = ()
    obstacle: str = ""
    """Why it could not be answered, as a kind of problem; empty if nothing is in the way."""
    users: tuple[str, ...] | None = field(default=None, repr=False)
    """The names of the people; None once they are forgotten, or the request is cancelled."""
    sequence: int | None = None
    """The ledger entry that answered it."""

    def facts(self) -> dict[str, Any]:
        """What is stored in the clear: nothing that names a person."""
        apart = {"id", "status", "users", "sequence"}
        found = {name: value for name, value in vars(self).items() if name not in apart}
        return {**found, "urls": list(self.urls), "callbacks": [vars(each) for each in self.callbacks]}

    @classmethod
    def of_facts(
        cls,
        id_: str,
        status: str,
        facts: Mapping[str, Any],
        users: tuple[str, ...] | None,
        sequence: int | None,
    ) -> "SubjectRequest":
        """Read what `facts` returned."""
        callbacks = tuple(Callback(**each) for each in facts["callbacks"])
        lists = {"urls": tuple(facts["urls"]), "callbacks": callbacks}
        return cls(id=id_, status=status, users=users, sequence=sequence, **{**facts, **lists})

    def to_dict(self) -> dict[str, Any]:
        """What may be shown to an operator: all but the names and the digest of the body."""
        hidden = ("users", "body_digest", "callbacks")
        found = {name: value for name, value in vars(self).items() if name not in hidden}
        return {**found, "urls": list(self.urls), "untold": len(self.callbacks)}
