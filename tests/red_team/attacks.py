"""What an attack is, and the table of verdicts."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    """How a trial ended."""

    CAUGHT = "caught"
    """`verify`, or the verification of a certificate, says what is wrong."""
    REFUSED = "refused"
    """A command ends with a sentence, and nothing is signed."""
    NO_EFFECT = "no effect"
    """Every value is what it was, and what is signed is true."""
    MISSED = "missed"
    """Something false was signed, a change passed unnoticed, or a command ended without a sentence."""


class Trial(NamedTuple):
    """One attempt: what was done, and how it ended."""

    what: str
    verdict: Verdict
    detail: str = ""


Attack = Callable[[int, int], Iterator[Trial]]
"""Yields trials, given how many are wanted and a seed."""


@dataclass
class Score:
    """The verdicts of one attack."""

    name: str
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    missed: list[Trial] = field(default_factory=list)

    def add(self, trial: Trial) -> None:
        """Count a trial."""
        self.verdicts[trial.verdict] += 1
        if trial.verdict is Verdict.MISSED:
            self.missed.append(trial)

    @property
    def trials(self) -> int:
        """How many trials there were."""
        return self.verdicts.total()


def table(scores: list[Score]) -> str:
    """The verdicts of all attacks, and what was missed."""
    names = [*Verdict]
    width = max(len(score.name) for score in scores)
    lines = [f"{'attack':<{width}} {'trials':>7} " + " ".join(f"{name:>9}" for name in names)]
    for score in [*scores, _total(scores)]:
        numbers = " ".join(f"{score.verdicts[name]:>9}" for name in names)
        lines.append(f"{score.name:<{width}} {score.trials:>7} {numbers}")
    lines += [f"MISSED {score.name}: {one.what}: {one.detail}" for score in scores for one in score.missed]
    return "\n".join(lines)


def _total(scores: list[Score]) -> Score:
    total = Score("all")
    for score in scores:
        total.verdicts += score.verdicts
    return total
