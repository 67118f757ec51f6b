"""No file names a machine's folders, and everything public is documented by an example that runs."""

import inspect
import re
import subprocess
from enum import Enum
from pathlib import Path

import pytest

import armnesia

ROOT = Path(__file__).parents[2]

# Put together from pieces, so that this file does not contain what it looks for.
_FOLDERS = "|".join(("home", "work", "root"))
_HOSTS = "|".join((r"pypi\.", "[a-z.]*python" + "hosted", r"files\."))
LEFT_BEHIND = re.compile(rf"(?<![\w.])/(?:{_FOLDERS})/|https?://(?:{_HOSTS})")

# Without an example of their own, and why.
NEED_NO_EXAMPLE = {
    "Branch": "constants",
    "Decision": "a result: shown where the learners are",
    "Feasibility": "a result: shown where `feasible_reference` is",
    "Joined": "a result: shown where `join_metrics` is",
    "JointAudit": "a result: shown where `audit_jointly` is",
    "JointComparison": "a result: shown where `compare_jointly` is",
    "JointRelease": "a result: shown where `release_jointly` is",
    "Learner": "abstract: shown by its subclasses",
    "Level": "an enumeration",
    "Comparison": "a result: shown where `compare` is",
    "Release": "a result: shown where the unlearners are",
    "Sweep": "a result: shown where `sweep` is",
    "Unlearner": "abstract: shown by its subclasses",
    "Witness": "a part of a result",
    "privacy_curve": "makes a `PrivacyCurve`, whose examples all begin with it",
}


REFUTED = re.compile(
    r"as if (?:only the other records|these records had never|(?:they had )?never (?:been )?there)"
    r"|other records alone (?:would )?give|in (?:the|a) world without (?:the records|U)\b"
    r"|[Rr]equests do not compose\b|\(kε, ?kδ\)"
    r"|suspicion of 50|without the deleted rewards with odds"
    r"|stricter guarantee than Algorithm 2"
)
"""Sentences about guarantees that are false, or true of rollback only: docs/guarantees.md says what holds."""


def tracked_files() -> list[Path]:
    try:
        listing = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"not a git checkout, so there is no list of its files: {error}")
    return [ROOT / name for name in listing.split("\0") if name and (ROOT / name).is_file()]


def text_of(file: Path) -> str:
    """The text of a file; pictures and archives have none."""
    try:
        return file.read_text("utf-8")
    except UnicodeDecodeError:
        return ""


def test_no_file_names_the_folders_of_a_machine_or_a_package_registry() -> None:
    files = tracked_files()
    assert ROOT / "pyproject.toml" in files
    found = [
        f"{file.relative_to(ROOT)}: {match.group()}"
        for file in files
        for match in LEFT_BEHIND.finditer(text_of(file))
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "".join(("open('/ho", "me/me/log.csv')")),
        "".join(("cd /wo", "rk/main")),
        "".join(("--index-url https://pyp", "i.org/simple")),
        "".join(("https://fil", "es.python", "hosted.org/packages/x.whl")),
    ],
)
def test_the_search_sees_planted_faults(line: str) -> None:
    assert LEFT_BEHIND.search(line)
    assert not LEFT_BEHIND.search("https://docs.python.org/3/ and src/network/homework/file, homework/")


def public_callables() -> dict[str, object]:
    public = {name: getattr(armnesia, name) for name in armnesia.__all__}
    return {name: value for name, value in public.items() if callable(value)}


def has_example(thing: object) -> bool:
    return ">>>" in (thing.__doc__ or "")


def test_everything_public_is_there_and_documented() -> None:
    assert len(armnesia.__all__) == len(set(armnesia.__all__))
    undocumented = [name for name, thing in public_callables().items() if not (thing.__doc__ or "").strip()]
    assert undocumented == []


def test_everything_public_is_shown_by_an_example_that_runs() -> None:
    without = {name for name, thing in public_callables().items() if not has_example(thing)}
    assert sorted(without - set(NEED_NO_EXAMPLE)) == []


def test_the_exceptions_are_still_exceptions() -> None:
    exempt = {name: public_callables()[name] for name in NEED_NO_EXAMPLE}
    assert [name for name, thing in exempt.items() if has_example(thing)] == []
    for name, thing in exempt.items():
        if "abstract" in NEED_NO_EXAMPLE[name]:
            assert inspect.isabstract(thing)
        if "enumeration" in NEED_NO_EXAMPLE[name]:
            assert inspect.isclass(thing)
            assert issubclass(thing, Enum)


def test_no_refuted_sentence_about_guarantees_comes_back() -> None:
    told = [
        file
        for file in tracked_files()
        if file.suffix in {".py", ".md", ".html"}
        and file.relative_to(ROOT).parts[0] not in {"tests", "CHANGELOG.md"}
    ]
    assert len(told) > 300
    found = {str(file): REFUTED.findall(" ".join(text_of(file).split())) for file in told}
    assert {file: sentences for file, sentences in found.items() if sentences} == {}


@pytest.mark.parametrize(
    "sentence",
    [
        "as if only the other records had been there",
        "decided exactly as if these records had never been here",
        "the decision that the other records alone would give",
        "the released arm in the world without the records",
        "who is forgotten by k requests at (ε, δ) each has (kε, kδ)",
        "a suspicion of 50 % becomes at most 73 %",
        "both under a stricter guarantee than Algorithm 2",
    ],
)
def test_a_refuted_sentence_is_found(sentence: str) -> None:
    assert REFUTED.search(sentence)
