"""The declared parameters of all learners and unlearners, as the command line and the vault use them."""

import dataclasses
from collections import defaultdict

import pytest

from armnesia import LEARNERS, UNLEARNERS
from armnesia.core.parameters import Parameter, build, parameters_of

KINDS: dict[str, type] = {**LEARNERS, **UNLEARNERS}
each_kind = pytest.mark.parametrize("name", KINDS)


def test_no_learner_has_the_name_of_an_unlearner() -> None:
    assert len(KINDS) == len(LEARNERS) + len(UNLEARNERS)


@each_kind
def test_every_field_is_a_declared_parameter(name: str) -> None:
    fields = [field.name for field in dataclasses.fields(KINDS[name]) if field.compare]
    assert [parameter.name for parameter in parameters_of(KINDS[name])] == fields


@each_kind
def test_the_defaults_make_the_plain_instance(name: str) -> None:
    kind = KINDS[name]
    defaults = {parameter.name: parameter.default for parameter in parameters_of(kind)}
    assert build(kind, defaults) == build(kind, {}) == kind()


@each_kind
def test_help_is_one_sentence_and_defaults_are_of_their_type(name: str) -> None:
    for parameter in parameters_of(KINDS[name]):
        assert parameter.help[0].isupper()
        assert parameter.help.endswith(".")
        assert parameter.help == parameter.help.strip()
        assert 20 <= len(parameter.help) <= 100
        assert parameter.default is None or isinstance(parameter.default, parameter.type)
        assert not parameter.choices or parameter.default in (None, *parameter.choices)


@each_kind
def test_every_choice_is_accepted_and_another_is_not(name: str) -> None:
    for parameter in parameters_of(KINDS[name]):
        for choice in parameter.choices:
            assert getattr(build(KINDS[name], {parameter.name: choice}), parameter.name) == choice
        if parameter.choices:
            with pytest.raises(ValueError, match=f"{parameter.name} must be .*; got 'unheard of'"):
                build(KINDS[name], {parameter.name: "unheard of"})


def test_the_same_name_means_the_same_everywhere() -> None:
    declared: dict[str, list[Parameter]] = defaultdict(list)
    for kind in KINDS.values():
        for parameter in parameters_of(kind):
            declared[parameter.name].append(parameter)
    for same in declared.values():
        assert {(each.type, each.help, each.choices) for each in same} == {
            (same[0].type, same[0].help, same[0].choices)
        }
    assert {"confidence", "default_action", "sensitivity", "ratio", "predictive"} <= set(declared)
