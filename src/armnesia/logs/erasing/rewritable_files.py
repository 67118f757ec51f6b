"""Whether files of a log can be written again without change, told before rows of them have to be erased."""

import os
import tempfile
from importlib.util import find_spec

import numpy as np

from armnesia.logs.erasing.parquet_rewriting import write_without
from armnesia.logs.files.source import FileSource
from armnesia.logs.source import Source


def check_rewritable(source: Source) -> None:
    """Refuse Parquet files with columns that an erasure could not write again; other sources pass.

    Of the files that have the same columns one is tried: it is written without rows to a temporary folder.
    Without pyarrow nothing can be told, and nothing can be erased either.
    """
    if type(source) is not FileSource or find_spec("pyarrow") is None:
        return
    files = source.files.parts or (source.files,)
    tried = {tuple(zip(file.stored_names, file.columns, strict=False)): file for file in reversed(files)}
    with tempfile.TemporaryDirectory(prefix="armnesia-") as folder:
        for file in tried.values():
            write_without(file.paths[0], os.path.join(folder, "tried.parquet"), np.arange(file.n_rows))
