"""Write the number of tests per folder to tests/counts.json, and print what changed: make count-tests."""

import json
from pathlib import Path

import pytest

from tests.lost_tests import COUNTS, counted

ROOT = Path(__file__).parents[1]


class Collected:
    def __init__(self) -> None:
        self.tests: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.tests = [item.nodeid for item in session.items]


def main() -> int:
    collected = Collected()
    code = pytest.main(["--collect-only", "-qqq", "-n0", f"--rootdir={ROOT}"], plugins=[collected])
    if code != pytest.ExitCode.OK:
        return int(code)
    table = ROOT / COUNTS
    before: dict[str, int] = json.loads(table.read_text("utf-8")) if table.exists() else {}
    now = counted(collected.tests)
    for folder in sorted({*before, *now}):
        old, new = before.get(folder, 0), now.get(folder, 0)
        print(f"{new:6} {folder}" + (f"  (was {old})" if new != old else ""))
    print(f"{sum(now.values()):6} in all" + (f"  (was {sum(before.values())})" if now != before else ""))
    table.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
