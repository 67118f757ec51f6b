"""Random tests of the science have fixed seeds; ruff sees to it that the package draws in one module only."""

import re
from pathlib import Path

import pytest

ROOMS = ("auditing", "core", "learners", "paper", "privacy", "simulation", "theory", "unlearners")
UNSEEDED = re.compile(
    r"default_rng\(\)|SeedSequence\(\)|\bRandom\(\)|SystemRandom|use_true_random=True"
    r"|np\.random\.(?!default_rng|Generator)"
)


def test_random_tests_of_the_science_have_fixed_seeds() -> None:
    files = [file for room in ROOMS for file in Path(__file__).parents[1].joinpath(room).rglob("*.py")]
    assert len(files) > 80
    assert [str(file) for file in files if UNSEEDED.search(file.read_text("utf-8"))] == []


@pytest.mark.parametrize("drawn", ["np.random.default_rng()", "np.random.normal(3)", "Random().random()"])
def test_a_draw_without_a_seed_is_seen(drawn: str) -> None:
    assert UNSEEDED.search(drawn)
