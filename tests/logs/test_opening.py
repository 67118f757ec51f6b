"""The registry of sources: a new kind is one file and one line."""

import copy
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError, UnsupportedError
from armnesia.logs import Source, open_source, read_log, reopen_source
from armnesia.logs.columns import Columns
from armnesia.logs.manifests import Changes, Manifest, TableRange
from armnesia.logs.opening import SOURCES
from armnesia.logs.rows import RawRows, Selection, raw_rows_of
from armnesia.vault import Configuration, Vault


class Countdown(Source):
    """Decisions that a file counts: countdown://FILE has as many rows as the file says, and may get more."""

    def __init__(self, url: str, columns: Columns, *, table: str | None, whole_rows: bool) -> None:
        self._url, self._rows = url, range(int(Path(url.removeprefix("countdown://")).read_text()))
        super().__init__(columns, ["arm", "won", "user", "page"], whole_rows=whole_rows)

    @property
    def description(self) -> Mapping[str, Any]:
        return {"kind": "table", "location": self._url, "table": None, "columns": vars(self.columns)}

    def n_rows(self) -> int:
        return len(self._rows)

    def distinct_actions(self) -> Iterable[Any]:
        return ["A"]

    def raw_rows(self, chunk: int, selection: Selection | None) -> Iterator[RawRows]:
        n, users = len(self._rows), [f"u-{row}" for row in self._rows]
        values: dict[str, list[Any]] = {"arm": ["A"] * n, "won": [1] * n, "user": users, "page": ["home"] * n}
        others = ["arm", "page", "user"] if self.reads_whole_rows else None
        raw = raw_rows_of(values, self.columns, self._rows, others, self.keys).selected(selection)
        if raw.positions:
            yield raw

    # For external vaults:

    def manifest(self) -> TableRange:
        return TableRange(self._url, "row", len(self._rows), len(self._rows))

    @staticmethod
    def manifest_from(values: Mapping[str, Any]) -> TableRange:
        return TableRange.from_dict(values)

    def changes_since(self, manifest: Manifest) -> Changes:
        assert isinstance(manifest, TableRange)
        if len(self._rows) < manifest.n_rows:
            return Changes(recount="rows are gone")
        return Changes((self._url,) if len(self._rows) > manifest.n_rows else ())

    def counted_part(self, manifest: Manifest, changes: Changes) -> Self:
        assert isinstance(manifest, TableRange)
        return self._part(self._rows[: manifest.n_rows])

    def new_part(self, manifest: Manifest, changes: Changes) -> Self:
        assert isinstance(manifest, TableRange)
        return self._part(self._rows[manifest.n_rows :])

    def _part(self, rows: range) -> Self:
        part = copy.copy(self)
        part._rows = rows
        return part


@pytest.fixture
def countdown(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("a_new_source")
    module.Countdown = Countdown  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_new_source", module)
    monkeypatch.setitem(SOURCES, "countdown://", ("a_new_source", "Countdown"))


@pytest.mark.usefixtures("countdown")
@pytest.mark.parametrize("mode", ["managed", "external"])
def test_a_new_kind_is_read_by_everything(mode: str, tmp_path: Path) -> None:
    names: dict[str, Any] = {"action": "arm", "reward": "won"}
    number, url = tmp_path / "number", f"countdown://{tmp_path}/number"
    number.write_text("5")
    log = read_log(url, **names, actions=["A", "B"])
    assert log.statistics().counts.tolist() == [5, 0]
    assert log.request(user="u-3").counts.tolist() == [1, 0]
    assert len(log.by("page")) == 1
    with pytest.raises(UnsupportedError, match="rows of a Countdown cannot be chosen by where"):
        read_log(url, **names, where="arm = A")
    source = open_source(url, action="arm", reward="won")
    assert list(reopen_source(source.description).rows(["A"], (0, 1))) == list(source.rows(["A"], (0, 1)))
    assert list(source.rows(["A"], (0, 1), users=["nobody"])) == []
    with Vault.create(f"sqlite:///{tmp_path}/v.db", Configuration(actions=("A", "B"), mode=mode)) as vault:
        assert vault.ingest(url, **names, user="user").added == 5
        assert vault.forget(users=["u-2"]).records == 1
        number.write_text("7")
        assert vault.ingest(url, **names, user="user").added == 2
        assert vault.forget(users=["u-6"]).records == 1
        assert vault.verify().holds
        number.write_text("4")
        assert vault.ingest(url, **names, user="user").added == (0 if mode == "managed" else -2)
        assert vault.verify().holds


@pytest.mark.usefixtures("countdown")
def test_a_scheme_that_is_not_registered_is_refused_with_the_registered_ones() -> None:
    with pytest.raises(
        InvalidInputError,
        match="sqlite://, postgresql://, postgres://, spark:, delta:, iceberg:, countdown://; got",
    ):
        open_source("countup://5", action="arm", reward="won")
    for kind in ("path", "object"):  # not schemes
        with pytest.raises(InvalidInputError, match="the URL of a source must begin with one of sqlite://,"):
            open_source(f"{kind}://5", action="arm", reward="won")


def test_a_source_that_is_gone_is_refused_without_a_word_about_vaults(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("action,reward\nA,1\n")
    source = open_source(tmp_path / "log.csv", action="action", reward="reward")
    (tmp_path / "log.csv").unlink()
    with pytest.raises(InvalidLogError, match="is not a file and matches none") as caught:
        reopen_source(source.description)
    assert "vault" not in str(caught.value)


@pytest.mark.parametrize("name", ["delta", "iceberg", "spark", "object"])
def test_a_word_without_a_colon_is_a_path(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "log.csv").write_text("action,reward\nA,1\n")
    monkeypatch.chdir(tmp_path)
    assert read_log(name, actions=["A", "B"]).statistics().counts.tolist() == [1, 0]
