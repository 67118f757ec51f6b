"""Erasure at the source: deletes the rows of given people where the log is kept.

`open_eraser` gives the eraser of an opened source, one file per kind. It makes a plan, which can be stored
and holds nothing about people, applies it, and purges what is left of the rows in earlier versions.
"""

from armnesia.logs.erasing.opening import open_eraser
from armnesia.logs.erasing.people import People
from armnesia.logs.erasing.plan import Erasure, ErasurePlan, FileSwap, SourceState

__all__ = ["Erasure", "ErasurePlan", "FileSwap", "People", "SourceState", "open_eraser"]
