"""What privacy costs: a made-up decision, computed by the library while somebody moves the sliders."""

import asyncio
import json
import math
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from armnesia.auditing import compare
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.learners import LCB
from armnesia.privacy import Budget, Guarantee, Level, privacy_curve
from armnesia.service.pages.preview import METHOD_WORDS, guarantee_sentence
from armnesia.service.pages.routing import PageRoute, needs
from armnesia.service.pages.templating import is_part, rendered
from armnesia.vault import Role

router = APIRouter(route_class=PageRoute)
_MEANS = {"A": 0.6, "B": 0.55, "C": 0.5, "D": 0.4}
"""The arms of the made-up decision."""
_RECORDS = (100, 1_000, 10_000)
_POINTS, _SMALLEST = 80, 1e-12


class Cost(NamedTuple):
    """What a method would do with the made-up request."""

    name: str
    words: str
    level: str
    sentence: str
    change: float
    loss: float


class Explored(NamedTuple):
    """The curve of the noise that a budget needs, and what each method costs."""

    gamma: float
    costs: tuple[Cost, ...]
    refused: tuple[str, ...]
    curve: str
    """The points of the curve, as JSON for the picture."""
    points: tuple[tuple[float, float], ...]
    """Some points of the curve, for whoever does not see the picture."""


@router.get("/page/explore", **needs(Role.READER))
async def explore(
    request: Request,
    epsilon: Annotated[float, Query(ge=0.1, le=10)] = 1.0,
    delta: Annotated[float, Query(ge=-10, le=-1, description="The exponent of 10.")] = -5.0,
    share: Annotated[int, Query(ge=1, le=90, description="Per cent.")] = 5,
    records: Annotated[int, Query()] = 1_000,
) -> Response:
    """The sliders, and what follows from them."""
    records = records if records in _RECORDS else 1_000
    epsilon, delta = round(epsilon, 1), float(round(delta))
    async with request.app.state.exploring:  # however many people move sliders, others do not wait
        found = await asyncio.to_thread(_explored, epsilon, delta, share, records)
    between, chance = Guarantee(epsilon, 10**delta, Level.REQUEST_SHAPE).between_contents
    values = {
        "epsilon": epsilon,
        "exponent": delta,
        "share": share,
        "records": records,
        "choices": _RECORDS,
        "means": _MEANS,
        "found": found,
        "odds": math.exp(between),
        "chance": chance,
    }
    return rendered(request, "parts/explored.html" if is_part(request) else "explore.html", values)


@lru_cache(maxsize=512)
def _explored(epsilon: float, exponent: float, share: int, records: int) -> Explored:
    budget = Budget(epsilon=epsilon, delta=10**exponent)
    counts = np.full(len(_MEANS), records)
    means = np.array(list(_MEANS.values()))
    statistics = ArmStatistics(tuple(_MEANS), counts, _sums(counts, means))
    deleted = np.zeros(len(_MEANS), dtype=np.int64)
    deleted[0] = max(1, records * share // 100)
    request = DeletionRequest(ArmStatistics(tuple(_MEANS), deleted, _sums(deleted, means)), binary=True)
    found = compare(LCB().bind(statistics), statistics, request, budget)
    costs = tuple(
        Cost(
            each.name,
            METHOD_WORDS.get(each.name, ""),
            str(each.guarantee.level).replace("_", " "),
            guarantee_sentence(each.guarantee),
            each.change,
            each.expected_loss,
        )
        for each in found
        if each.guarantee is not None
    )
    curve = privacy_curve(budget.gamma)
    epsilons = np.linspace(0, max(1.2 * epsilon, curve.epsilon(_SMALLEST)), _POINTS + 1)
    deltas = curve.delta(epsilons)
    picture = {
        "epsilon": epsilons.round(3).tolist(),
        "delta": [float(each) if each >= _SMALLEST / 2 else None for each in deltas],
        "chosen": [epsilon, budget.delta],
    }
    some = [(float(each), curve.delta(float(each))) for each in (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)]
    refused = tuple(each.name for each in found if each.guarantee is None)
    return Explored(budget.gamma, costs, refused, json.dumps(picture), tuple(some))


def _sums(counts: Any, means: Any) -> Any:
    """The rewards 0 and 1 whose mean is nearest, as the library counts them."""
    return np.rint(counts * means).astype(np.int64) * UNIT
