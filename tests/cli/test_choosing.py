"""The commands in docs/choosing.md run as written."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "choosing.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("shuf") is None, reason="shuf, of the GNU coreutils, is not installed")
def test_the_commands_for_made_up_requests_run(folder: Path) -> None:
    rows = [f"e-{i},u-{i % 500},{'ABC'[i % 3]},{int(i % 7 < 4)}" for i in range(1500)]
    (folder / "clicks.csv").write_text("\n".join(["event_id,user_id,variant,clicked", *rows]) + "\n")
    (block,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (rows_option,) = re.findall(r"`--rows (\".*?\")`", PAGE)
    main = 'armnesia() { "$0" -c "from armnesia.cli.main import main; main()" "$@"; }\n'
    columns = "--action-column variant --reward-column clicked --actions A,B,C --epsilon 1 --delta 1e-5"
    by_rows = f"armnesia compare clicks.csv {columns} --rows {rows_option.replace('90000', '1500')}\n"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", main + block + by_rows, sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len((folder / "sample.txt").read_text().split()) == 100
    titles = re.findall(r"^Forgetting (\d+) records", done.stdout, re.MULTILINE)
    assert len(titles) == 3
    assert titles[-1] == "100"
