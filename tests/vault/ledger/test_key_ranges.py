"""Random ledgers with rotations and thefts: which certificates are valid, computed entry by entry."""

import json
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from armnesia.vault import Certificate, Keyring, LedgerCopy, PublicKeys
from armnesia.vault.ledger.certificate import CertificateDraft, Erasure
from armnesia.vault.ledger.ledger import GENESIS, Entry
from armnesia.vault.ledger.public_keys import key_history
from tests.vault.forging import sign_again, terms_of

TIME = "2026-11-15T10:42:07.123456Z"
RING = Keyring("v-1", (b"1" * 32,), tuple(bytes([number]) * 32 for number in range(1, 9)))


@dataclass
class History:
    """A ledger, and what happened in it, in plain lists."""

    entries: list[Entry] = field(default_factory=list)
    key_at: list[int] = field(default_factory=list)
    """The version of the key in use while this was the last entry."""
    thefts: list[tuple[int, int]] = field(default_factory=list)
    """(entry of the rotation, since when the keys before it are compromised)."""
    erased: dict[int, int] = field(default_factory=dict)
    """By the version of a retired key, how far erasure was complete at its end."""

    def append(self, kind: str, signer: Keyring | None = None, **facts: object) -> None:
        head = self.entries[-1].head if self.entries else None
        entry = Entry.next_after(
            *(len(self.entries), GENESIS if head is None else head.hash),
            **{"vault": "v-1", "kind": kind, "time": TIME, "code": "armnesia 0.1.0", **facts},  # type: ignore[arg-type]
        )
        if signer is not None:
            entry = Entry({**entry.fields, "signed_by_new": signer.sign(entry.text.encode()).hex()})
        self.entries.append(entry)
        self.key_at.append(self.key_at[-1] + (kind == "rotate_signing") if self.key_at else 1)

    def ring(self, version: int) -> Keyring:
        return RING.at(digest_version=1, signing_version=version)

    def rotate(self, erased: int, since: int | None) -> None:
        version = self.key_at[-1] + 1
        new, old = self.ring(version), self.ring(version - 1)
        facts: dict[str, object] = {"version": version, "public": new.public_key(), "erased_through": erased}
        facts["signed_by_previous"] = old.sign(new.public_key().encode()).hex()
        self.append("rotate_signing", new, **facts, **({} if since is None else {"compromised_since": since}))
        self.erased[version - 1] = erased
        if since is not None:
            self.thefts.append((len(self.entries), since))

    @property
    def keys(self) -> PublicKeys:
        history = key_history(entry.fields for entry in self.entries)
        return PublicKeys("v-1", self.entries[-1].head, history)

    @property
    def copy(self) -> LedgerCopy:
        return LedgerCopy.of([(entry.sequence, entry.text, entry.hash) for entry in self.entries])

    def certificate(self, number: int, version: int, at: int, erasure: Erasure) -> Certificate:
        draft = CertificateDraft.of(self.entries[number - 1], "the files")
        head = self.entries[at - 1].head
        return draft.issue(self.ring(version), head=head, erasure=erasure, issued=TIME)

    def expected(self, number: int, version: int, at: int, erasure: Erasure, *, with_ledger: bool) -> bool:
        """Whether such a certificate is valid: by definition, without ranges."""
        in_use = self.key_at[at - 1] == version
        may_say = erasure == "pending" or number <= self.erased.get(version, number)
        if with_ledger:
            stolen = any(since <= at < rotation for rotation, since in self.thefts)
        else:  # a thief can name any entry of the key's range
            range_ = [n for n, key in enumerate(self.key_at, 1) if key == version]
            stolen = any(since <= n < rotation for rotation, since in self.thefts for n in range_)
        return in_use and may_say and not stolen


@st.composite
def histories(draw: st.DrawFn) -> History:
    found = History()
    found.append("init", public_key=RING.public_key(1))
    found.append("nothing_held", terms=terms_of("nothing_held", {}, "the files"))
    for step in draw(st.lists(st.sampled_from(["nothing_held", "policy", "rotate", "theft"]), max_size=9)):
        length = len(found.entries)
        if step == "nothing_held":
            found.append("nothing_held", terms=terms_of("nothing_held", {}, "the files"))
        elif step == "policy" or found.key_at[-1] == RING.signing_version:
            found.append("policy")
        else:
            since = draw(st.integers(1, length)) if step == "theft" else None
            found.rotate(draw(st.integers(0, length)), since)
    return found


@settings(max_examples=25)
@given(histories(), st.data())
def test_a_certificate_is_valid_where_the_history_says_so(history: History, data: st.DataObject) -> None:
    keys, copy, head = history.keys, history.copy, history.entries[-1].head
    assert copy.keys == keys == PublicKeys.from_json(json_of(keys))
    about = [entry.sequence for entry in history.entries if entry.kind == "nothing_held"]
    for _ in range(3):
        number = data.draw(st.sampled_from(about))
        version = data.draw(st.integers(1, len(keys)))
        at = data.draw(st.integers(number, len(history.entries)))
        erasure: Erasure = data.draw(st.sampled_from(["pending", "complete"]))
        certificate = history.certificate(number, version, at, erasure)
        assert certificate.verify(list(keys)) == []  # keys without ranges cannot tell
        by_ledger = history.expected(number, version, at, erasure, with_ledger=True)
        by_list = history.expected(number, version, at, erasure, with_ledger=False)
        for given_keys in (keys, list(keys)):
            assert (certificate.verify(given_keys, ledger=copy) == []) == by_ledger
            assert (certificate.verify(given_keys, ledger=copy, head=head) == []) == by_ledger
        assert (certificate.verify(keys) == []) == by_list
        assert not by_list or by_ledger


@settings(max_examples=40)
@given(histories(), st.data())
def test_whoever_holds_retired_keys_signs_nothing_that_the_vault_did_not_say(
    history: History, data: st.DataObject
) -> None:
    """All he can do is to sign an entry of the ledger again, at an entry of his key's range."""
    keys, copy = history.keys, history.copy
    version = data.draw(st.integers(1, len(keys)))
    about = data.draw(st.sampled_from([e for e in history.entries if e.kind == "nothing_held"]))
    other = Entry({**about.fields, "salt_key": data.draw(st.integers(1, 3))})
    forged = CertificateDraft.of(other, "the files").issue(
        history.ring(version), head=other.head, erasure="pending", issued=TIME
    )
    at = data.draw(
        st.sampled_from([other.head, *(entry.head for entry in history.entries[about.sequence :])])
    )
    forged = sign_again(forged, RING, version, issued_at_head=str(at))
    assert forged.verify(None) == []
    for given_keys in (keys, list(keys)):
        assert forged.verify(given_keys, ledger=copy) != []


def json_of(keys: PublicKeys) -> str:
    return json.dumps(keys.to_dict(), indent=2)
