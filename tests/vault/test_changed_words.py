"""Certificates keep the words that their ledger entries fix, also where new certificates say more."""

from typing import Any

import pytest

from armnesia.privacy import Guarantee
from armnesia.vault import Configuration, UserType
from armnesia.vault.ledger import certificate_text
from tests.databases import fresh_place
from tests.vault.raw_vaults import filled

FORMER = "(ε = 3, δ = 1e-05) at level retained: the deleted records are forgotten"
NOW = "(ε = 3, δ = 1e-05) at level retained: up to (ε, δ), the deleted records are forgotten"


def test_a_certificate_in_former_words_stays_valid_and_is_issued_again_in_them(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tilt: dict[str, Any] = {"unlearner": "tilt", "unlearner_options": {"assumed_share": 0.5}}
    configuration = Configuration(
        actions=("A", "B"), epsilon=3.0, delta=1e-5, user_type=UserType.TEXT, **tilt
    )
    with filled(fresh_place("sqlite", tmp_path), configuration) as vault:
        with monkeypatch.context() as former:
            former.setattr(Guarantee, "meaning", property(lambda guarantee: guarantee.level.meaning))
            certificate_text._claims.cache_clear()
            old = vault.forget(users=["ann"]).certificate
        certificate_text._claims.cache_clear()
        new = vault.forget(users=["bob"]).certificate
        assert FORMER in old.body["claims"]["guarantee"]
        assert NOW in new.body["claims"]["guarantee"]
        assert "retained: up to (ε, δ), the deleted" in new.body["claims"]["level"]
        assert old.verify(vault.public_keys()) == new.verify(vault.public_keys()) == []
        assert vault.certificate(users=["ann"]).body["claims"] == old.body["claims"]
        vault.rotate_signing_key(compromised_since=1)
        again = vault.certificate(users=["ann"])
        assert again.body["signing_key"]["version"] == 2
        assert again.body["claims"] == old.body["claims"]
        assert again.verify(vault.public_keys()) == []
        assert not vault.verify().problems
