"""A Spark session for tests, in this process: it starts when a test first needs it."""

import atexit
import importlib.util
import os
import shutil
import sys
import tempfile
import warnings
from functools import cache
from typing import Any

import pytest

from armnesia.core.errors import MissingExtraError

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # it starts faster
    "spark.sql.session.timeZone": "America/New_York",  # texts must not depend on it
}


def has_spark() -> bool:
    """Whether pyspark and Java are there."""
    return importlib.util.find_spec("pyspark") is not None and shutil.which("java") is not None


NEEDS_SPARK = pytest.mark.skipif(not has_spark(), reason="pyspark or Java is not installed")
OF_SPARK = [NEEDS_SPARK, pytest.mark.slow]
"""Marks of parameters and modules: a session takes seconds to start, in each process of a run."""


@cache
def spark() -> Any:
    """The session."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

    folder = tempfile.mkdtemp(prefix="armnesia-spark-")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # which has armnesia
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for name, value in {**SETTINGS, "spark.sql.warehouse.dir": folder}.items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        raise MissingExtraError("Java did not start") from error
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(session.stop)
    return session
