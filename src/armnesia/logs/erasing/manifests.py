"""What was counted of a source, as it is after rows were erased that were not counted."""

import os

from armnesia.logs.erasing.plan import ErasurePlan
from armnesia.logs.manifests import Changes, FileManifest, Manifest, TableRange
from armnesia.logs.source import Source


def manifest_after(source: Source, counted: Manifest, plan: ErasurePlan) -> Manifest:
    """The manifest of the rows that were counted, after a plan was applied at the source.

    Of files, those that the plan replaced have other stamps. Of a table of a database, the last row that was
    counted may be gone. A table of a lake has another version, which is taken to have the same rows: whoever
    stores it counts them.
    """
    if isinstance(counted, FileManifest):
        new = {swap.path: swap.new for swap in plan.files}
        files = ((path, *new.get(os.path.realpath(path), stamp)) for path, *stamp in counted.files)
        return FileManifest(tuple((path, size, changed) for path, size, changed in files))
    if isinstance(counted, TableRange):
        return source.counted_part(counted, Changes()).manifest()
    return source.manifest()
