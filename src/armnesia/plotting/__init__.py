"""Pictures of the privacy curve and of a deletion. Needs the extra `plots`."""

from armnesia.plotting.forgetting import picture_of_forgetting
from armnesia.plotting.privacy_curve import picture_of_curve
from armnesia.plotting.style import save

__all__ = ["picture_of_curve", "picture_of_forgetting", "save"]
