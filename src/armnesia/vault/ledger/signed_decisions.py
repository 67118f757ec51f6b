"""The served arms under the signing key: an in-toto statement in an envelope, as entries are.

>>> from armnesia.vault.keys.keyring import Keyring
>>> keyring, head = Keyring.create("v-1"), Checkpoint("armnesia/v-1", 3, bytes(32))
>>> served = [{"key": {"country": "DE"}, "action": "B"}]
>>> signed = SignedDecisions.issue(keyring, head, ["country"], served)
>>> SignedDecisions.from_dict(signed.to_dict()).verify(keyring.public_key())
[]
>>> signed.verify(Keyring.create("v-1").public_key())
['the served arms are not signed by a key that was given']
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Self

from armnesia.core.errors import InvalidInputError
from armnesia.vault.keys.canonical_json import canonical, read_object, utc_now
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.checkpoint import Checkpoint
from armnesia.vault.ledger.entry import STATEMENT_TYPE
from armnesia.vault.ledger.envelope import Envelope

PREDICATE_TYPE = "urn:armnesia:served:v1"
MAY_HAVE_CHANGED = (
    "Other arms may be served by now: new rows change them without an entry in the ledger. See when the table"
    " was signed, and ask for a new one."
)


class SignedDecisions(Envelope):
    """What every decision of a vault served at a head of its ledger, signed."""

    @classmethod
    def issue(
        cls, keyring: Keyring, head: Checkpoint, by: Sequence[str], decisions: Sequence[Mapping[str, Any]]
    ) -> Self:
        """Sign the served arms, each with the key of its decision, at a head of the ledger."""
        served = [dict(each) for each in decisions]
        statement = {
            "_type": STATEMENT_TYPE,
            "subject": [{"name": "decisions", "digest": {"sha256": _digest(served)}}],
            "predicateType": PREDICATE_TYPE,
            "predicate": {
                **{"vault": keyring.vault, "head": str(head), "issued": utc_now()},
                **{"by": list(by), "decisions": served},
            },
        }
        return cls.signed(canonical(statement).encode(), keyring.signing_keys[-1])

    @classmethod
    def from_dict(cls, document: Any) -> Self:
        """Read an envelope of served arms; refuse another one."""
        signed = super().from_dict(document)
        statement = read_object(signed.payload, "the statement")
        body = statement.get("predicate")
        is_body = isinstance(body, dict) and isinstance(body.get("head"), str)
        if statement.get("predicateType") != PREDICATE_TYPE or not is_body:
            raise InvalidInputError(
                f"a table of served arms must be of the type {PREDICATE_TYPE}, with a head"
            )
        return signed

    @property
    def body(self) -> Mapping[str, Any]:
        """The vault, the head, when it was issued, the key columns and the decisions."""
        predicate: Mapping[str, Any] = json.loads(self.payload)["predicate"]
        return predicate

    def verify(self, keys: str | Iterable[str]) -> list[str]:
        """What is wrong with it, a sentence each; `keys` as for a certificate."""
        if any(map(self.is_signed_by, [keys] if isinstance(keys, str) else keys)):
            return []
        return ["the served arms are not signed by a key that was given"]


def _digest(decisions: Sequence[Mapping[str, Any]]) -> str:
    return sha256(canonical(decisions).encode()).hexdigest()
