"""Without an extra, what needs it says in one sentence what to install."""

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

PROGRAM = """
import sys
sys.modules.update(dict.fromkeys({missing!r}))
from armnesia.core.errors import MissingExtraError
from armnesia.logs import open_source, read_log
from armnesia.logs.statements import Chosen
try:
    {statement}
except MissingExtraError as error:
    print(error)
"""
CASES = {
    "duckdb": ("read_log('clicks.csv')", "engines"),
    "duckdb_extension_postgres_scanner": ("read_log('postgresql:///logs', table='clicks')", "databases"),
    "duckdb_extension_httpfs": ("read_log('s3://logs/clicks.parquet')", "lakes"),
    "deltalake": ("read_log('delta:clicks')", "lakes"),
    "pyiceberg.catalog": ("read_log('iceberg:lake.logs.clicks')", "lakes"),
    "pyspark.sql": ("read_log('spark:clicks')", "spark"),
    "pyarrow": ("open_source('clicks.parquet').eraser().check()", "erase"),
    "cryptography": ("from armnesia.vault import Vault; Vault.create('sqlite:///vault.db')", "vault"),
    "matplotlib": (
        "from armnesia.plotting.style import panel_grid; panel_grid(1, 1, width=1, height=1)",
        "plots",
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("missing", CASES)
def test_what_is_missing_is_named_with_its_extra(missing: str, tmp_path: Path) -> None:
    duckdb.sql("SELECT 'A' AS action, 1 AS reward, 'ann' AS \"user\"").write_parquet(
        str(tmp_path / "clicks.parquet")
    )
    (tmp_path / "clicks.csv").write_text("action,reward\nA,1\n", encoding="utf-8")
    statement, extra = CASES[missing]
    program = PROGRAM.format(missing=[missing], statement=statement)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    assert f'pip install "armnesia[{extra}]"' in done.stdout
