"""What a request would do, by the vault's own method and, beside it, by the others that its policy allows."""

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from armnesia.core.errors import ArmnesiaError, SimilarNameError
from armnesia.privacy import Guarantee, Level
from armnesia.service.pages.work import Prepared
from armnesia.unlearners import UNLEARNERS
from armnesia.vault import Configuration, Preview, Vault

_MOST_DECISIONS, _MOST_ARMS, _MOST_COLUMNS = 20, 6, 4
METHOD_WORDS = {
    "rollback": "decides anew, without the records",
    "gaussian": "adds noise to the scores of the arms",
    "centred_gaussian": "adds noise to the scores, centred between what the records could have been",
    "adaptive": "adds noise, or decides anew, whichever costs less",
    "strict_adaptive": "as adaptive, without looking at the earlier decision",
    "mixing": "mixes the earlier decision with a new one",
    "multi_source": "adds noise, for records of several arms",
    "imitation_rollback": "decides anew by the counts of the arms",
    "frozen_rollback": "decides anew, with the penalties as they were",
    "tilt": "draws among the arms near the top, by their chances to be best",
}


@dataclass(frozen=True)
class Place:
    """A decision that a request touches, and the chances there."""

    key: Mapping[str, str]
    counts: Mapping[Hashable, int]
    served: Any
    chances: Mapping[Hashable, float]

    @property
    def change(self) -> float:
        """The probability that another arm is served afterwards."""
        return max(0.0, 1 - self.chances.get(self.served, 0.0))

    @property
    def likely(self) -> list[tuple[Hashable, float]]:
        """The arms that are likeliest to be served afterwards."""
        possible = [(arm, chance) for arm, chance in self.chances.items() if chance > 0]
        return sorted(possible, key=lambda each: -each[1])[:_MOST_COLUMNS]

    @property
    def largest(self) -> list[tuple[Hashable, int]]:
        """The arms that lose most records."""
        touched = [(arm, count) for arm, count in self.counts.items() if count]
        return sorted(touched, key=lambda each: -each[1])[:_MOST_ARMS]

    @property
    def more(self) -> int:
        """How many other arms lose records."""
        return sum(count > 0 for count in self.counts.values()) - len(self.largest)


@dataclass(frozen=True)
class Method:
    """An unlearner, and what it would do with a request."""

    name: str
    own: bool
    """Whether it is the vault's own, which answers."""
    guarantee: Guarantee
    places: tuple[Place, ...]

    @property
    def words(self) -> str:
        """How it works."""
        return METHOD_WORDS.get(self.name, "")

    @property
    def changes(self) -> float:
        """The expected number of decisions that change."""
        return sum(place.change for place in self.places)

    @property
    def likeliest(self) -> list[Place]:
        """The decisions that are likeliest to change."""
        possible = [place for place in self.places if place.change > 0]
        return sorted(possible, key=lambda place: -place.change)[:3]


@dataclass(frozen=True)
class Previewed:
    """What a person sees before they confirm."""

    preview: Preview
    methods: tuple[Method, ...]
    """The vault's own first."""
    similar: Mapping[str, tuple[str, ...]]
    """Spellings that the vault holds, by the name that was asked for."""

    @property
    def own(self) -> Method | None:
        """The method that will answer; None if nothing is held."""
        return self.methods[0] if self.methods else None

    @property
    def arms(self) -> list[Hashable]:
        """The arms with a chance to be served, the likeliest first; a page has room for a few."""
        own = self.own
        if own is None:
            return []
        chances = {
            arm: max(place.chances.get(arm, 0.0) for method in self.methods for place in method.places)
            for place in own.places
            for arm in place.counts
        }
        possible = [arm for arm, chance in chances.items() if chance > 0]
        return sorted(possible, key=lambda arm: -chances[arm])[:_MOST_COLUMNS]


def preview_request(vault: Vault, prepared: Prepared) -> Previewed:
    """Preview a request; one that the vault holds in other spellings is a question, not an error."""
    named: dict[str, Any] = {prepared.kind: list(prepared.names)}
    budget = _budget(vault.configuration)
    methods = [{}, *({"unlearner": name, **budget} for name in UNLEARNERS)]
    try:
        own, *others = vault.preview_methods(**named, methods=methods, exactly=prepared.exactly)
    except SimilarNameError as error:
        nothing = vault.preview(**named, exactly=True)
        return Previewed(nothing, (), error.similar)
    if isinstance(own, ArmnesiaError):
        raise own
    if own.release is None:
        return Previewed(own, (), {})
    return Previewed(own, _likeliest_first(_method(own, own=True), *_others(own, others)), {})


def _likeliest_first(own: Method, *others: Method) -> tuple[Method, ...]:
    """The methods, each with the decisions in one order: the likeliest to change by the vault's own first."""
    order = sorted(range(len(own.places)), key=lambda place: -own.places[place].change)
    return tuple(
        replace(method, places=tuple(method.places[place] for place in order)) for method in (own, *others)
    )


def _others(own: Preview, others: Iterable[Preview | ArmnesiaError]) -> list[Method]:
    """The other unlearners, without those that the policy does not allow, or that cannot answer."""
    found = [
        _method(each, own=False)
        for each in others
        if isinstance(each, Preview) and each.fallback_because is None and each.unlearner != own.unlearner
    ]
    levels = list(Level)
    return sorted(found, key=lambda each: (levels.index(each.guarantee.level), each.changes))


def _budget(configuration: Configuration) -> dict[str, Any]:
    """That of the vault, or else the largest that its policy allows."""
    if configuration.epsilon or configuration.delta:
        return {"epsilon": configuration.epsilon, "delta": configuration.delta}
    return {"epsilon": configuration.policy.max_epsilon, "delta": configuration.policy.max_delta}


def _method(preview: Preview, *, own: bool) -> Method:
    assert preview.release is not None
    assert preview.unlearner is not None
    if preview.decisions is None:
        places = [Place({}, preview.counts, preview.served_before, preview.probabilities or {})]
    else:
        each = preview.to_dict()["decisions"]
        places = [
            Place(one["key"], one["counts"], one["served_before"], one["probabilities"]) for one in each
        ]
    return Method(preview.unlearner, own, preview.release.guarantee, tuple(places))


def guarantee_sentence(guarantee: Guarantee) -> str:
    """What a guarantee says, in one plain sentence.

    >>> print(guarantee_sentence(Guarantee(0.0, 0.0, Level.RETAINED)))
    What is served afterwards says nothing of these records, nor of how many they were.
    >>> print(guarantee_sentence(Guarantee(1.0, 1e-5, Level.REQUEST_SHAPE)))
    What is served afterwards does not tell two possible contents of these records apart with odds better than
    7.39 to 1 (at ε = 1), but for a chance of 3.7e-05 (at δ = 1e-05); how many records of each arm were
    deleted is not concealed.
    """
    open_shape = {
        Level.RETAINED: "",
        Level.REQUEST_SHAPE: "how many records of each arm were deleted is not concealed",
        Level.ORIGINAL_DECISION: (
            "how many records of each arm were deleted, and what was served before, is not concealed"
        ),
    }[guarantee.level]
    if guarantee.epsilon == guarantee.delta == 0:
        if not open_shape:
            return "What is served afterwards says nothing of these records, nor of how many they were."
        return f"What is served afterwards says nothing of the deleted rewards; {open_shape}."
    if guarantee.is_vacuous:
        return "This budget guarantees nothing."
    epsilon, delta = guarantee.between_contents
    odds = f"{math.exp(min(epsilon, 700.0)):.3g} to 1 (at ε = {guarantee.epsilon:.3g})"
    chance = f", but for a chance of {delta:.2g} (at δ = {guarantee.delta:.2g})" if delta else ""
    more = f"; {open_shape}" if open_shape else ""
    return (
        "What is served afterwards does not tell two possible contents of these records apart with odds"
        f" better than {odds}{chance}{more}."
    )


def shown_places(previewed: Previewed) -> tuple[Place, ...]:
    """The decisions that are likeliest to change: a page has no room for hundreds."""
    return () if previewed.own is None else previewed.own.places[:_MOST_DECISIONS]
