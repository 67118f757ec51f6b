"""Who or what a request names, by options and by files: exactly as written, or refused in one sentence."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import made_once
from tests.cli.examples import contents

LOG = 'id,action,reward,user\n1,A,1,ann\n" 2",A,0," ann "\n"3,4",B,1,bob\n5;6,B,0,eve;x\n'
SPACES = "ids that begin or end with a space: 1 of 1; spaces are part of an id\n"
NO_ROW = "rows ingested without --id-column have no id and can be forgotten by user only\n"


@pytest.fixture(autouse=True)
def vault(folder: Path, run: Any) -> Path:
    """A vault of four rows with unusual names and ids."""
    with made_once(folder, "vault of unusual names") as is_first:
        if is_first:
            Path("log.csv").write_text(LOG)
            assert run("init", "--actions", "A,B").code == 0
            columns = ("--user-column", "user", "--id-column", "id")
            assert run("ingest", "log.csv", *columns, "--json").json["added"] == 4
    return folder


@pytest.mark.parametrize(
    ("text", "options"), [(None, ("--records", " 2")), (" 2\n", ("--records-file", "names"))]
)
def test_spaces_around_an_id_belong_to_it_and_are_warned_of(
    run: Any, text: str | None, options: tuple[str, ...]
) -> None:
    if text is not None:
        Path("names").write_text(text, newline="")
    done = run("forget", *options, "--json")
    assert (done.json["records"], done.json["counts"]) == (1, {"A": 1, "B": 0})
    assert done.err == f"armnesia: warning: {SPACES}"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (None, ("--user", " ann ")),
        (" ann \r\n\r\n", ("--file", "names")),
        ('" ann "\n', ("--file", "names")),
        ("number,who\n1, ann \n", ("--file", "names", "--column", "who")),
    ],
)
def test_spaces_around_a_user_are_not_part_of_the_name(
    run: Any, text: str | None, options: tuple[str, ...]
) -> None:
    if text is not None:
        Path("names").write_text(text, newline="")
    done = run("forget", *options, "--json")
    (opened,) = done.json["certificate"]["opening"]
    assert (done.json["records"], opened["text"]) == (2, "ann")
    assert done.err == ""
    assert run("forget", "--user", "ann", "--json").json["repeated"]


def test_names_without_spaces_are_not_warned_of(run: Any) -> None:
    done = run("forget", "--user", "ann", "--json")
    assert (done.json["records"], done.err) == (2, "")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('1\n"3,4"\n5;6\n', ()),
        ('name,row\nx,1\ny,"3,4"\nz,5;6\n', ("--column", "row")),
    ],
)
def test_a_file_of_records_is_one_request_for_forget_readmit_and_certificates(
    run: Any, text: str, options: tuple[str, ...]
) -> None:
    Path("ids").write_text(text)
    named = ("--records-file", "ids", *options)
    assert run("forget", *named, "--dry-run", "--json").json["records"] == 3
    done = run("forget", *named, "--json")
    assert (done.json["records"], done.json["named"], done.json["held"], done.err) == (3, 3, 3, "")
    saved = run("certificate", "show", *named, "--out-folder", "folder", "--json")
    assert (saved.code, saved.json["written"]) == (0, 3)
    assert run("readmit", *named, "--json").json["readmitted"] == 3


@pytest.mark.parametrize(
    ("options", "numbers"), [(("--records", "7"), "1 of 1"), (("--records", "1,7,8"), "2 of 3")]
)
def test_ids_of_no_row_are_warned_of(run: Any, options: tuple[str, ...], numbers: str) -> None:
    sentence = f"armnesia: warning: ids that belong to no row: {numbers}; {NO_ROW}"
    assert run("forget", *options, "--dry-run").err == sentence
    assert run("forget", *options).err == sentence
    assert run("forget", *options).err == ""  # answered before


def test_people_without_rows_need_no_such_warning(run: Any) -> None:
    assert run("forget", "--user", "stranger").err == ""


@pytest.mark.parametrize("option", ["--file", "--records-file"])
@pytest.mark.parametrize(
    ("text", "column", "sentence"),
    [
        (None, None, "names cannot be read: No such file or directory"),
        ("u;ann\nv;bob\n", None, "names has a semicolon in every line"),
        ("u\tann\nv\tbob\n", None, "names has a tab in every line"),
        ("u,ann\nv,bob\n", None, "names has 2 columns; choose one with --column"),
        ("u,ann\nv,bob\n", "w", "names has no column 'w' in its first line"),
        ("u,u\nann,bob\n", "u", "names has more than one column 'u' in its first line"),
        ("", None, "names must name at least one"),
        ("  \n\t\n", None, "names must name at least one"),
        ("u,ann\n\nv,\n", "ann", "per line; line 3 names none"),
        ("u,ann\nv, \n", "ann", "per line; line 2 names none"),
    ],
)
def test_a_file_without_usable_names_is_refused(
    run: Any, vault: Path, option: str, text: str | None, column: str | None, sentence: str
) -> None:
    if text is not None:
        Path("names").write_text(text)
    before = contents(vault)
    refused = run("forget", option, "names", *(("--column", column) if column else ()))
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert refused.err.startswith(f"armnesia: {option} ")
    assert sentence in refused.err
    assert "bob" not in refused.err
    assert contents(vault) == before


def test_a_line_of_spaces_is_skipped_as_an_empty_one(run: Any) -> None:
    Path("names").write_text("   \neve;x\n\n \t\nbob\n  ")
    assert run("forget", "--file", "names", "--dry-run", "--json").json["named"] == 2


def test_a_semicolon_in_some_names_or_below_a_header_is_part_of_them(run: Any) -> None:
    Path("names").write_text("eve;x\nbob\n")
    assert run("forget", "--file", "names", "--dry-run", "--json").json["records"] == 2
    Path("names").write_text("who\neve;x\n")
    assert run("forget", "--file", "names", "--column", "who", "--json").json["records"] == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("forget", "--records", "1", "--records-file", "names"), "; got --records and --records-file"),
        (("forget", "--user", "eve", "--file", "names"), "; got --user and --file"),
        (("forget",), "--records and --records-file; got none"),
        (("readmit", "--file", "names", "--records-file", "names"), "by one of --user"),
        (("readmit", "--records", "1", "--column", "x"), "--column belongs to --file or --records-file"),
    ],
)
def test_one_way_to_name_is_enough(run: Any, arguments: tuple[str, ...], sentence: str) -> None:
    refused = run(*arguments)
    assert (refused.code, refused.out) == (2, "")
    assert sentence in refused.err


@pytest.mark.parametrize("header", ["user_id", "User ID", "id", "EMAIL"])
def test_a_header_is_not_a_name(run: Any, vault: Path, header: str) -> None:
    (vault / "people.csv").write_text(f"{header}\nu1\n")
    refused = run("forget", "--file", vault / "people.csv")
    assert (refused.code, refused.out) == (2, "")
    assert "looks like a header" in refused.err
    assert run("forget", "--file", vault / "people.csv", "--column", header, "--json").json["named"] == 1
