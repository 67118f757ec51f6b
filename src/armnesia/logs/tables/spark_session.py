"""The Spark session in which tables are read: the one that is active, or a new one, without its messages."""

import atexit
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from armnesia.core.errors import InvalidInputError, MissingExtraError

_LOCAL = "local[*]"
_JAVA = "JAVA_GATEWAY_EXITED"
_NO_PROGRESS = {"spark.ui.showConsoleProgress": "false"}


def spark_session() -> Any:
    """The active session; else a new one, by SPARK_REMOTE (Connect) or SPARK_MASTER, or in this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about versions of libraries that are not used here
        try:
            from pyspark.errors import PySparkException  # noqa: PLC0415 (an extra)
            from pyspark.sql import SparkSession  # noqa: PLC0415 (an extra)
        except ImportError as error:
            raise MissingExtraError.naming("A table of Spark", "spark") from error
        active = SparkSession.getActiveSession()
        if active is not None:
            return active
        try:
            with without_output():
                return _configured(SparkSession.builder).getOrCreate()
        except ImportError as error:
            raise MissingExtraError(
                'A table by Spark Connect needs optional dependencies: pip install "pyspark[connect]"'
            ) from error
        except PySparkException as error:
            raise _not_started(error) from None


def _configured(builder: Any) -> Any:
    remote, master = os.environ.get("SPARK_REMOTE"), os.environ.get("SPARK_MASTER")
    if remote:
        return builder.remote(remote)
    master = master or _LOCAL
    options = _NO_PROGRESS | _of_this_process() if master.startswith("local") else _NO_PROGRESS
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.master(master).appName("armnesia")


def _of_this_process() -> dict[str, str]:
    """The options of a session that nobody else uses: no web page, no folder in the working folder."""
    folder = tempfile.mkdtemp(prefix="armnesia-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {"spark.ui.enabled": "false", "spark.sql.warehouse.dir": folder}


def _not_started(error: Any) -> Exception:
    condition = error.getCondition()
    if condition == _JAVA:
        return MissingExtraError(
            "A table of Spark needs Java 17 or newer, which did not start: install it, such as Debian's"
            " openjdk-17-jre-headless, and set JAVA_HOME if it is not on the PATH"
        )
    return InvalidInputError(
        f"Spark did not start ({condition or type(error).__name__}): are SPARK_REMOTE and SPARK_MASTER right?"
    )


@contextmanager
def without_output() -> Iterator[None]:
    """Start Java without the terminal: it inherits the two streams, and writes to them as long as it runs."""
    kept = [os.dup(number) for number in (1, 2)]
    with tempfile.TemporaryFile() as nowhere:
        try:
            for number in (1, 2):
                os.dup2(nowhere.fileno(), number)
            yield
        finally:
            for number, before in zip((1, 2), kept, strict=True):
                os.dup2(before, number)
                os.close(before)
