"""Promise 9: bad input gets one sentence, and changes nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.promises.driver import Driven, Refused, Row, command, driven

GOOD = "event,person,arm,reward,country\n1,ann,A,1,DE\n2,bob,B,0,DE\n"
BAD_LOGS = {
    "no reward column": "event,person,arm,country\n3,ann,A,DE\n",
    "no user column": "event,arm,reward,country\n3,A,1,DE\n",
    "a reward above the range": GOOD.replace("1,ann,A,1", "3,ann,A,1.5"),
    "a reward that is no number": GOOD.replace("1,ann,A,1", "3,ann,A,much"),
    "no reward": GOOD.replace("1,ann,A,1", "3,ann,A,"),
    "infinity": GOOD.replace("1,ann,A,1", "3,ann,A,inf"),
    "an arm that was not declared": GOOD.replace("1,ann,A,1", "3,ann,C,1"),
    "no arm": GOOD.replace("1,ann,A,1", "3,ann,,1"),
    "an id twice with other contents": GOOD + "1,cem,B,0,DE\n",
    "no id": GOOD.replace("1,ann", ",ann"),
    "a column twice": GOOD.replace("country", "reward", 1),
    "a row that is too long": GOOD + "4,dan,A,1,DE,more\n",
    "a row that is too short": GOOD + "4,dan\n",
    "nothing at all": "",
    "no text": "\x00\x01\x02",
}


def is_one_sentence(sentence: str) -> bool:
    return bool(sentence) and "Traceback" not in sentence and "\n" not in sentence.strip()


@pytest.fixture
def held(tmp_path: Path) -> Driven:
    vault = driven("sqlite", tmp_path)
    vault.add([Row("10", "eva", "A", 4), Row("11", "fay", "B", 2)])
    return vault


@pytest.mark.parametrize("why", BAD_LOGS)
def test_a_bad_log_is_refused_as_a_whole(held: Driven, why: str) -> None:
    before = held.statistics(), held.head()
    path = held.folder / "bad.csv"
    path.write_text(BAD_LOGS[why], encoding="utf-8")
    with pytest.raises(Refused) as refused:
        held.ingest(path)
    assert refused.value.code == 2
    assert is_one_sentence(refused.value.sentence)
    assert (held.statistics(), held.head()) == before


BAD_COMMANDS: dict[str, Callable[[Driven], object]] = {
    "nobody is named": lambda vault: vault.forget(),
    "a log that is not there": lambda vault: vault.ingest("nowhere.csv"),
    "an id that is held with another content": lambda vault: vault.add([Row("10", "eva", "B", 4)]),
    "an id that is held for somebody else": lambda vault: vault.correct([Row("10", "fay", "A", 4)]),
    "an unlearner that is none": lambda vault: vault.forget("eva", options=("--unlearner", "magic")),
    "a budget that is none": lambda vault: vault.forget("eva", options=("--epsilon", "-1")),
    "beyond the policy": lambda vault: vault.forget(
        "eva", options=("--unlearner", "tilt", "--epsilon", "1", "--delta", "1e-5")
    ),
    "a second vault in the same place": lambda vault: vault.init(),
    "somebody who was not forgotten": lambda vault: vault.readmit("eva"),
    "an arm that is offered already": lambda vault: vault.add_arm("A"),
    "an arm that is unknown": lambda vault: vault.run("arms", "retire", "Z"),
    "a certificate of somebody who was never in a request": lambda vault: vault.certificate("eva"),
    "an option that is none": lambda vault: vault.run("status", "--quick"),
    "a command that is none": lambda vault: vault.run("forgett", "eva"),
    "erasing where rows are in the vault": lambda vault: vault.erase(),
    "a certificate that is none": lambda vault: command(
        "certificate", "verify", vault.log([]), "--public-key", vault.public_keys()
    ),
}


@pytest.mark.parametrize("why", BAD_COMMANDS)
def test_a_bad_request_is_refused_in_one_sentence(held: Driven, why: str) -> None:
    before = held.statistics(), held.head()
    with pytest.raises(Refused) as refused:
        BAD_COMMANDS[why](held)
    assert refused.value.code in (1, 2)
    assert "Traceback" not in refused.value.sentence
    assert (held.statistics(), held.head()) == before
    assert held.problems() == []


def test_no_refusal_names_a_person_of_the_log(held: Driven) -> None:
    path = held.folder / "bad.csv"
    path.write_text(GOOD.replace("1,ann,A,1", "3,Ada Lovelace,A,1.5"), encoding="utf-8")
    with pytest.raises(Refused) as refused:
        held.ingest(path)
    assert "Lovelace" not in refused.value.sentence


def test_without_its_keys_a_vault_is_not_opened(held: Driven) -> None:
    held.place.keys.unlink()
    with pytest.raises(Refused) as refused:
        held.decisions()
    assert is_one_sentence(refused.value.sentence)


def test_a_vault_that_another_process_writes_to_is_busy_and_not_broken(held: Driven) -> None:
    with held.database() as database:
        database.change("BEGIN IMMEDIATE") if database.is_sqlite else None
        with pytest.raises(Refused) as refused:
            held.forget("eva", options=("--timeout", "0"))
        database.change("ROLLBACK")
    assert refused.value.code == 75
    assert held.forget("eva").records == 1


def test_a_vault_that_is_gone_is_not_made_anew_beside_its_keys(held: Driven) -> None:
    held.place.path.unlink()
    for again in (held.init, held.decisions, lambda: held.forget("eva")):
        with pytest.raises(Refused):
            again()
    assert not held.place.path.exists()
