"""DSSE envelopes, against securesystemslib and the values that the specification publishes."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from securesystemslib.dsse import Envelope as TheirEnvelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from armnesia.core.errors import InvalidInputError
from armnesia.vault.keys.signatures import public_key
from armnesia.vault.ledger.envelope import STATEMENT, Envelope, keyid_of, pre_authentication_encoding
from tests.quick import examples

SEED, OTHER = bytes(range(32)), bytes(range(1, 33))


def their_key(seed: bytes) -> SSlibKey:
    public = public_key(seed)
    return SSlibKey(keyid_of(public), "ed25519", "ed25519", {"public": public})


def test_the_encoding_is_the_one_published() -> None:
    encoding = pre_authentication_encoding("http://example.com/HelloWorld", b"hello world")
    assert encoding == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


@given(st.binary(max_size=100), st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
@examples(200)
def test_securesystemslib_verifies_what_is_signed_here(payload: bytes, payload_type: str) -> None:
    envelope = Envelope.signed(payload, SEED, payload_type)
    theirs = TheirEnvelope.from_dict(json.loads(json.dumps(envelope.to_dict())))
    assert theirs.pae() == envelope.pae
    assert list(theirs.verify([their_key(SEED)], 1)) == [keyid_of(public_key(SEED))]
    with pytest.raises(VerificationError):
        theirs.verify([their_key(OTHER)], 1)


def document(payload: bytes = b"\xfb\xff{}") -> dict[str, Any]:
    return Envelope.signed(payload, SEED).to_dict()


def test_both_alphabets_unknown_fields_and_no_hint_are_accepted() -> None:
    own = document()
    own["payload"] = base64.urlsafe_b64encode(b"\xfb\xff{}").decode()
    own["comment"] = "unknown"
    del own["signatures"][0]["keyid"]
    assert "-" in own["payload"]
    assert Envelope.from_dict(own).is_signed_by(public_key(SEED))


def test_one_of_several_signatures_is_enough() -> None:
    own, other = Envelope.signed(b"{}", SEED), Envelope.signed(b"{}", OTHER)
    both = Envelope(b"{}", STATEMENT, other.signatures + own.signatures)
    assert both.is_signed_by(public_key(SEED))
    assert both.is_signed_by(public_key(OTHER))
    assert both.leaf == own.leaf


def test_another_payload_or_type_is_not_signed() -> None:
    own = Envelope.signed(b"{}", SEED)
    assert not Envelope(b"{ }", STATEMENT, own.signatures).is_signed_by(public_key(SEED))
    assert not Envelope(b"{}", STATEMENT + "2", own.signatures).is_signed_by(public_key(SEED))
    assert not Envelope(b"{}", STATEMENT, ()).is_signed_by(public_key(SEED))


@pytest.mark.parametrize(
    "change",
    [
        lambda own: own.pop("payload"),
        lambda own: own.pop("payloadType"),
        lambda own: own.pop("signatures"),
        lambda own: own["signatures"][0].pop("sig"),
        lambda own: own.update(payload="e30"),
        lambda own: own.update(payload=7),
        lambda own: own.update(payloadType=None),
        lambda own: own.update(payloadType="\ud800"),
        lambda own: own.update(signatures=["e30="]),
        lambda own: own.update(signatures={"sig": "e30="}),
    ],
)
def test_what_is_no_envelope_is_refused(change: Any) -> None:
    own = document()
    change(own)
    with pytest.raises(InvalidInputError, match="an envelope must have payload"):
        Envelope.from_dict(own)
