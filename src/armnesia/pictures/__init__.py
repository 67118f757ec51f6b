"""Results as pictures. Needs the extra `plots`."""

from armnesia.pictures.curve import picture_of_curve
from armnesia.pictures.forgetting import picture_of_forgetting
from armnesia.pictures.style import save

__all__ = ["picture_of_curve", "picture_of_forgetting", "save"]
