"""Occurrences of ids and contents: counted as a dictionary does, in memory that does not grow."""

import sys
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armnesia.logs import occurrences as module
from armnesia.logs.occurrences import Occurrences

TEXTS = st.sampled_from(["a", "b", "c", "", "a\0", "é"])
DECISIONS = st.tuples(st.integers(0, 1), st.integers(0, 1), st.sampled_from([None, "", "ann"]))


@pytest.fixture(params=["as always", "tiny runs in files", "half of each digest the same"])
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that are merged in many parts in files, and digests that only their second half tells apart."""
    if request.param == "tiny runs in files":
        monkeypatch.setattr(module, "_IN_MEMORY", 2)
        monkeypatch.setattr(module, "_PART", 3)
    if request.param == "half of each digest the same":
        same = dict.fromkeys(("a", "b", "c"), 7)
        monkeypatch.setattr(module, "hash", lambda value: same.get(value, hash(value)), raising=False)


@pytest.mark.usefixtures("small")
@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(TEXTS, max_size=9), max_size=6))
def test_occurrences_are_counted_like_a_dictionary_does(calls: list[list[str]]) -> None:
    counted: Counter[str] = Counter()
    occurrences = Occurrences()
    for texts in calls:
        expected = []
        for text in texts:
            expected.append(counted[text])
            counted[text] += 1
        assert occurrences.number(texts) == expected


@pytest.mark.usefixtures("small")
def test_many_distinct_texts_in_many_chunks() -> None:
    random = np.random.default_rng(3)
    counted: Counter[str] = Counter()
    occurrences = Occurrences()
    for _ in range(60):
        texts = [str(number) for number in random.integers(0, 400, random.integers(0, 80))]
        expected = []
        for text in texts:
            expected.append(counted[text])
            counted[text] += 1
        assert occurrences.number(texts) == expected


@pytest.mark.usefixtures("small")
@settings(max_examples=60, deadline=None)
@given(noted=st.lists(st.tuples(st.sampled_from("abcdef"), DECISIONS), max_size=12), chunk=st.integers(1, 5))
def test_contradictions_are_found_by_brute_force_too(noted: list[tuple[str, Any]], chunk: int) -> None:
    occurrences, counted = Occurrences(), Counter[str]()
    contradiction = None
    for first in range(0, len(noted), chunk):
        ids, decisions = zip(*noted[first : first + chunk], strict=True)
        positions = range(first, first + len(ids))
        ordinals, found = occurrences.number_decisions(ids, decisions, positions)
        assert ordinals == [counted[id_] + ids[:place].count(id_) for place, id_ in enumerate(ids)]
        counted.update(ids)
        contradiction = contradiction or found
    pairs = [
        (later, earlier)
        for later in range(len(noted))
        for earlier in range(later)
        if noted[later][0] == noted[earlier][0] and noted[later][1] != noted[earlier][1]
    ]
    # The first row that contradicts an earlier one, and the first row with its id.
    assert contradiction == (min(pairs)[::-1] if pairs else None)


def test_a_chunk_is_looked_up_without_reading_what_is_known() -> None:
    """Binary search: a chunk of two texts costs some twenty comparisons in each of a few runs."""
    occurrences = Occurrences()
    for first in range(0, 64_000, 1_000):
        occurrences.number([str(number) for number in range(first, first + 1_000)])
    lengths = [len(run.digests) for run in occurrences._runs]
    assert sum(lengths) == 64_000
    assert len(lengths) <= 9
    assert all(longer >= shorter for longer, shorter in pairwise(lengths))
    assert occurrences.number(["0", "other"]) == [1, 0]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the open files of a process this way")
def test_large_runs_are_in_files_without_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(module, "_IN_MEMORY", 100)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    occurrences = Occurrences()
    for first in range(0, 1_000, 50):
        occurrences.number([str(number) for number in range(first, first + 50)])
    large = [run for run in occurrences._runs if len(run.digests) > 100]
    assert large
    assert all(len(run.mappings) == 2 for run in large)
    assert list(tmp_path.iterdir()) == []
