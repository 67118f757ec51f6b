"""A vault with many decisions on the command line."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from armnesia.cli.vault.served import read_key
from armnesia.core.errors import InvalidInputError

ROWS = [
    (
        "ABC"[row % 3],
        int(row % 7 < 3),
        f"user-{row % 10}",
        ("DE", "FR", "IT, north")[row % 11 % 3],
        15 + row % 40,
    )
    for row in range(300)
]
COLUMNS = ("--action-column", "variant", "--reward-column", "clicked", "--user-column", "user")


@pytest.fixture
def keyed(run: Any, folder: Path) -> None:
    """A vault by country and age, in the working folder."""
    lines = [f'{variant},{clicked},{user},"{country}",{age}' for variant, clicked, user, country, age in ROWS]
    Path("log.csv").write_text(
        "\n".join(["variant,clicked,user,country,age", *lines]) + "\n", encoding="utf-8"
    )
    assert run("init", "--actions", "A,B,C", "--by", "country", "--by", "age:18,30").code == 0
    assert "Decisions: 9" in run("ingest", "log.csv", *COLUMNS).out


@pytest.mark.usefixtures("keyed")
def test_decide_prints_all_decisions_or_one(run: Any) -> None:
    shown = run("decide")
    assert shown.code == 0
    assert "9 decisions, smallest margins first" in shown.out
    assert "For the operator only" in shown.out
    found = run("decide", "--json").json
    assert found["by"] == ["country", "age:18,30"]
    assert len(found["decisions"]) == 9
    assert {tuple(each) for each in found["decisions"]} == {("key", "action", "by", "margin")}
    for each in found["decisions"]:
        key = ",".join(f"{name}={value}" for name, value in each["key"].items())
        one = run("decide", "--where", key, "--json").json
        assert one == {**each, "head": found["head"]}
    by_number = run("decide", "--where", "country=IT, north", "--where", "age=20", "--json").json
    assert by_number["key"] == {"country": "IT, north", "age": "18..30"}


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("country=DE", "a decision of this vault is named by 'country', 'age'; 'age' is missing"),
        ("country=XX,age=20", "the vault has no decision with the key {'country': 'XX', 'age': '18..30'}"),
        ("country=DE,country=FR", "--where must name a decision, as in country=DE,age=25, each key once"),
        ("country", "--where must name a decision, as in country=DE,age=25, each key once; got 'country'"),
        ("country=DE,age=young", "key 'age' must be a number or one of '<18', '18..30', '>=30'; got 'young'"),
    ],
)
def test_what_names_no_decision_is_refused(run: Any, where: str, sentence: str) -> None:
    refused = run("decide", "--where", where)
    assert refused.code == 2
    assert refused.err.startswith(f"armnesia: {sentence}")


def test_a_key_is_read_from_one_option_or_several() -> None:
    assert read_key(["a=1", "b = x=y "], ["a", "b"]) == read_key(["a=1,b=x=y"], ["a", "b"])


@pytest.mark.parametrize("text", ["page=a,b=c", "page=a, b =c", 'page="a,b=c', "page='a',b=c"])
def test_what_looks_like_an_unknown_key_is_refused(text: str) -> None:
    with pytest.raises(
        InvalidInputError, match=r"have the keys 'page'; got 'b' in .*put a value .* in quotes"
    ):
        read_key([text], ["page"])


@pytest.mark.usefixtures("keyed")
def test_forget_lists_the_decisions_for_the_operator(run: Any) -> None:
    shown = run("forget", "--user", "user-3", "--dry-run")
    assert "Would be forgotten: 30 records in " in shown.out
    assert "Guarantee of all releases together: (ε = 0, δ = 0) at level retained" in shown.out
    preview = run("forget", "--user", "user-3", "--dry-run", "--json").json
    assert {tuple(each) for each in preview["decisions"]} == {
        ("key", "counts", "served_before", "probabilities", "branch")
    }
    done = run("forget", "--user", "user-3", "--json").json
    assert [each["key"] for each in done["decisions"]] == [each["key"] for each in preview["decisions"]]
    assert sum(sum(each["counts"].values()) for each in done["decisions"]) == done["records"] == 30
    for each, before in zip(done["decisions"], preview["decisions"], strict=True):
        assert each.keys() == {"key", "counts", "served_before", "served"}
        assert before["probabilities"][each["served"]] > 0
    assert "decisions" not in run("ledger", "--json").json["entries"][-1]
    assert (
        "30 records in 6 decisions; 2 of them serve another arm now." in run("forget", "--user", "user-4").out
    )
    assert run("status", "--json").json["decisions"] == 9
    assert "9, by country, age:18,30" in run("status").out
    assert run("verify").code == 0


@pytest.mark.usefixtures("keyed")
def test_signed_decisions_are_verified_as_certificates_are(run: Any) -> None:
    signed = run("decide", "--signed")
    assert signed.code == 0
    Path("served.json").write_text(signed.out, encoding="utf-8")
    Path("keys.json").write_text(run("public-key", "--json").out, encoding="utf-8")
    verify = ("certificate", "verify", "served.json", "--public-key", "keys.json")
    found = run(*verify)
    assert found.code == 0
    assert found.out.startswith("Served at head 2:")
    assert "Other arms may be served by now: new rows change them without" in found.out
    checked = run(*verify, "--json").json
    assert (checked["valid"], checked["problems"], len(checked["decisions"])) == (True, [], 9)
    document = json.loads(signed.out)
    payload = base64.b64decode(document["payload"]).replace(b'"B"', b'"Z"')
    Path("served.json").write_text(json.dumps({**document, "payload": base64.b64encode(payload).decode()}))
    changed = run(*verify)
    assert (changed.code, changed.out.splitlines()[-1]) == (1, "It is not valid.")
    assert run("decide", "--signed", "--where", "country=DE,age=3").code == 2
    assert run("decide", "log.csv", "--signed", "--actions", "A,B,C").code == 2


def test_bad_keys_are_refused_at_init(run: Any) -> None:
    refused = run("init", "--actions", "A,B", "--by", "age:30,18")
    assert refused.code == 2
    assert refused.err.startswith("armnesia: edges of key 'age' must be finite numbers that rise")
    assert not Path("vault.db").exists()
    tilt = ("--unlearner", "tilt", "--epsilon", "1", "--delta", "1e-5", "--assumed-share", "0.5")
    refused = run("init", "--actions", "A,B", "--by", "country", *tilt)
    assert refused.err.startswith("armnesia: tilt at level retained cannot answer requests in many decisions")


@pytest.mark.usefixtures("keyed")
def test_more_decisions_than_the_limit_are_refused(run: Any) -> None:
    made = (
        "init",
        "--url",
        "sqlite:///small.db",
        "--actions",
        "A,B,C",
        "--by",
        "age",
        "--most-decisions",
        "5",
    )
    assert run(*made).code == 0
    refused = run("ingest", "log.csv", "--url", "sqlite:///small.db", *COLUMNS)
    assert refused.code == 2
    assert refused.err.startswith("armnesia: the keys 'age' make more than 5 decisions, the vault's limit")


@pytest.mark.usefixtures("keyed")
def test_the_decisions_are_declared_by_a_file(run: Any) -> None:
    Path("decisions.csv").write_text('age,country\n20,DE\n20,FR\n"<18",DE\n', encoding="utf-8")
    made = ("init", "--url", "sqlite:///declared.db", "--actions", "A,B,C", "--by", "country")
    edges = ("--by", "age:18,30")
    assert run(*made, *edges, "--decisions-file", "decisions.csv").code == 0
    served = run("decide", "--url", "sqlite:///declared.db", "--json")
    keys = [each["key"] for each in json.loads(served.out)["decisions"]]
    assert keys == [
        {"country": "DE", "age": "18..30"},
        {"country": "FR", "age": "18..30"},
        {"country": "DE", "age": "<18"},
    ]
    refused = run("ingest", "log.csv", "--url", "sqlite:///declared.db", *COLUMNS)
    assert refused.code == 2
    assert "is not one of the vault's 3 declared decisions" in refused.err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"country\nDE\n", "must have the columns 'country', 'age'; 'age' is missing"),
        (b"", "must have the columns 'country', 'age'"),
        (b"country,age\nDE\n", "key 'age' must be a number or one of"),
        (b"country,age\n\xff,1\n", "must be a CSV file in UTF-8"),
        (None, "cannot be read: No such file or directory"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_wrong_file_of_decisions_is_refused(run: Any, text: bytes | None, sentence: str) -> None:
    if text is not None:
        Path("decisions.csv").write_bytes(text)
    keys = ("--by", "country", "--by", "age:18,30", "--decisions-file", "decisions.csv")
    refused = run("init", "--actions", "A,B", *keys)
    assert refused.code == 2
    assert sentence in refused.err
    assert not Path("vault.db").exists()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("by", "sentence"),
    [
        ("country, device", "repeat it, as in --by country --by …"),
        ("page:", "edges follow the colon, as in age:18,30"),
    ],
)
def test_names_of_keys_that_are_rather_meant_otherwise_are_warned_of(
    run: Any, by: str, sentence: str
) -> None:
    made = run("init", "--actions", "A,B", "--by", by)
    assert made.code == 0
    assert f"the rows must have a column named {by!r}" in made.err
    assert sentence in made.err
    assert run("init", "--url", "sqlite:///other.db", "--by", "age:18,30", "--by", "utm:source").err == ""


@pytest.mark.usefixtures("keyed")
def test_what_is_missing_is_in_the_right_number(run: Any) -> None:
    assert "'country', 'age'; 'age' is missing" in run("status", "--scores", "--where", "country=DE").err
    Path("decisions.csv").write_text("page\n", encoding="utf-8")
    made = ("init", "--url", "sqlite:///b.db", "--actions", "A", "--by", "country", "--by", "age")
    refused = run(*made, "--decisions-file", "decisions.csv").err
    assert "'country', 'age' are missing" in " ".join(refused.split())
