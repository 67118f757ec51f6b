"""The registry of sources: a new kind is one file and one line."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, Self

import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError, UnsupportedError
from armnesia.logs import Source, open_source, read_log, reopen_source
from armnesia.logs.columns import Columns
from armnesia.logs.manifests import FileChanges, Manifest, SourceChanges, TableRange
from armnesia.logs.opening import SOURCES
from armnesia.logs.rows import RawRows, Selection, raw_rows_of
from armnesia.vault import Configuration, Vault


class Countdown(Source):
    """Decisions that a URL counts down: countdown://3 has three rows."""

    def __init__(self, url: str, columns: Columns, *, table: str | None, whole_rows: bool) -> None:
        self._url, self._rows = url, int(url.removeprefix("countdown://"))
        super().__init__(columns, ["arm", "won", "user", "page"], whole_rows=whole_rows)

    @property
    def description(self) -> Mapping[str, Any]:
        return {"kind": "table", "location": self._url, "table": None, "columns": vars(self.columns)}

    def n_rows(self) -> int:
        return self._rows

    def manifest(self) -> TableRange:
        return TableRange(self._url, "row", self._rows, 1)

    @staticmethod
    def manifest_from(values: Mapping[str, Any]) -> TableRange:
        return TableRange.from_dict(values)

    def changes_since(self, manifest: Manifest) -> FileChanges:
        return FileChanges(recount=None if manifest == self.manifest() else "it is another number")

    def counted_part(self, manifest: Manifest, changes: SourceChanges) -> Self:
        return self

    def distinct_actions(self) -> Iterable[Any]:
        return ["A"]

    def raw_rows(self, chunk: int, selection: Selection | None) -> Iterator[RawRows]:
        n = self._rows
        users = [f"u-{row}" for row in range(n)]
        values: dict[str, list[Any]] = {"arm": ["A"] * n, "won": [1] * n, "user": users, "page": ["home"] * n}
        others = ["arm", "page", "user"] if self.reads_whole_rows else None
        yield raw_rows_of(values, self.columns, range(n), others, self.keys).selected(selection)


@pytest.fixture
def countdown(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("a_new_source")
    module.Countdown = Countdown  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_new_source", module)
    monkeypatch.setitem(SOURCES, "countdown://", ("a_new_source", "Countdown"))


@pytest.mark.usefixtures("countdown")
@pytest.mark.parametrize("mode", ["managed", "external"])
def test_a_new_kind_is_read_by_everything(mode: str, tmp_path: Any) -> None:
    names: dict[str, Any] = {"action": "arm", "reward": "won"}
    log = read_log("countdown://5", **names, actions=["A", "B"])
    assert log.statistics().counts.tolist() == [5, 0]
    assert log.request(user="u-3").counts.tolist() == [1, 0]
    assert len(log.by("page")) == 1
    with pytest.raises(UnsupportedError, match="rows of a Countdown cannot be chosen by where"):
        read_log("countdown://5", **names, where="arm = A")
    source = open_source("countdown://5", action="arm", reward="won")
    assert list(reopen_source(source.description).rows(["A"], (0, 1))) == list(source.rows(["A"], (0, 1)))
    with Vault.create(f"sqlite:///{tmp_path}/v.db", Configuration(actions=("A", "B"), mode=mode)) as vault:
        assert vault.ingest("countdown://5", **names, user="user").added == 5
        assert vault.forget(users=["u-2"]).records == 1
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


def test_a_source_that_is_gone_is_refused_without_a_word_about_vaults(tmp_path: Any) -> None:
    (tmp_path / "log.csv").write_text("action,reward\nA,1\n")
    source = open_source(tmp_path / "log.csv", action="action", reward="reward")
    (tmp_path / "log.csv").unlink()
    with pytest.raises(InvalidLogError, match="is not a file and matches none") as caught:
        reopen_source(source.description)
    assert "vault" not in str(caught.value)
