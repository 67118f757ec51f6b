"""What the pictures share: the methods' styles, the files, and that there is something to draw."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.paper.bounds.picture import picture_of_bounds
from armnesia.paper.figures.picture import picture_of_figure_1, picture_of_figure_2, picture_of_figure_3
from armnesia.paper.phase.picture import picture_of_phases
from armnesia.paper.pictures import METHOD_STYLE, save_picture
from armnesia.paper.settings import METHODS
from tests.paper.drawing import bounds_panel


def test_every_method_of_the_experiments_has_a_look_of_its_own() -> None:
    assert set(METHOD_STYLE) == set(METHODS)
    for family in (
        {name for name in METHODS if "mixing " in name},
        {n for n in METHODS if "mixing " not in n},
    ):
        styles = [METHOD_STYLE[name] for name in family]
        assert len({style.name for style in styles}) == len(styles)
        assert len({style.colour for style in styles}) == len(styles)
        # Without colours: by marker and line.
        without_colour = {(style.marker, style.line) for style in styles}
        assert len(without_colour) >= len(styles) - 1  # Algorithms 2 and 7 are never in one picture


@pytest.mark.parametrize(
    "draw",
    [picture_of_figure_1, picture_of_figure_2, picture_of_figure_3, picture_of_phases, picture_of_bounds],
)
def test_nothing_to_draw_is_refused(draw: Callable[[Any], Any]) -> None:
    with pytest.raises(InvalidInputError, match="must not be empty"):
        draw([])


@pytest.mark.slow
def test_a_picture_is_saved_in_two_formats_the_same_each_time(tmp_path: Path) -> None:
    def saved(folder: str) -> list[Path]:
        return save_picture(picture_of_bounds([bounds_panel()]), tmp_path / folder, "bounds")

    once, again = saved("new/one"), saved("new/two")
    assert [file.name for file in once] == ["bounds.png", "bounds.svg"]
    assert once[0].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in once[1].read_text("utf-8")
    assert [file.read_bytes() for file in once] == [file.read_bytes() for file in again]
    assert sorted(file.name for file in once[0].parent.iterdir()) == ["bounds.png", "bounds.svg"]
