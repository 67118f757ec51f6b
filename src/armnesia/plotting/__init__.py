"""Pictures of the privacy curve, of a deletion and of many decisions. Needs the extra `plots`."""

from armnesia.plotting.decisions import margins, picture_of_decisions
from armnesia.plotting.forgetting import picture_of_forgetting
from armnesia.plotting.privacy_curve import picture_of_curve
from armnesia.plotting.style import save

__all__ = ["margins", "picture_of_curve", "picture_of_decisions", "picture_of_forgetting", "save"]
