"""Workers for simulations: this process, processes with one thread each, or a backend of joblib."""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from multiprocessing import get_context
from typing import Any, Protocol, TypeVar

from armnesia.core.errors import InvalidInputError, MissingExtraError

BACKENDS = ("loky", "threading", "dask")
"""The backends that can be chosen by name; any other can be activated with joblib itself."""
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_IN_WORKER = ContextVar("in_worker", default=False)
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Workers(Protocol):
    """What runs the parts of a simulation. The results do not depend on it."""

    def map(self, function: Callable[..., _Result], *arguments: Iterable[Any]) -> Iterator[_Result]:
        """The results of all calls, in their order."""

    def finished(
        self, function: Callable[[_Item], _Result], items: list[_Item]
    ) -> Iterator[tuple[_Item, _Result]]:
        """Each item with its result, as they become ready."""


@contextmanager
def workers(n_jobs: int) -> Iterator[Workers]:
    """Run on the backend of joblib that is active, if it is not joblib's default; else on `n_jobs` processes.

    With one job and without a backend, everything runs in this process. On a backend, one job stands for as
    many as the backend has by default.

    >>> with workers(1) as one:
    ...     list(one.map(pow, [2, 3], [3, 2]))
    [8, 9]
    """
    if _IN_WORKER.get():  # what runs on a worker does not hand work on
        yield _ThisProcess()
    elif _has_active_backend():
        yield _JoblibWorkers(None if n_jobs == 1 else n_jobs)
    elif n_jobs == 1:
        yield _ThisProcess()
    else:
        with _worker_pool(n_jobs) as pool:
            yield _Processes(pool)


@contextmanager
def backend_of_joblib(name: str | None) -> Iterator[None]:
    """Activate a backend by its name; None leaves what is active.

    For `dask`, work goes to the client that is there, or to the scheduler that DASK_SCHEDULER_ADDRESS names,
    or to a cluster on this machine.
    """
    if name is None:
        yield
        return
    if name not in BACKENDS:
        raise InvalidInputError(f"backend must be one of {', '.join(BACKENDS)}; got {name!r}")
    try:
        import joblib  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise MissingExtraError.naming("A backend of joblib", "parallel") from error
    one_thread = {"inner_max_num_threads": 1} if name == "loky" else {}
    with _client_of_dask() if name == "dask" else nullcontext(), joblib.parallel_config(name, **one_thread):
        _CHOSEN.append(name)
        try:
            yield
        finally:
            _CHOSEN.pop()


_CHOSEN: list[str] = []
"""The backends that were activated by name: the default one can only be told from no choice by this."""


def _has_active_backend() -> bool:
    if _CHOSEN:
        return True
    if "joblib" not in sys.modules:  # nobody can have activated one
        return False
    from joblib.parallel import get_active_backend  # noqa: PLC0415 (an extra)

    backend, _ = get_active_backend()
    return type(backend).__name__ not in ("LokyBackend", "SequentialBackend")


@contextmanager
def _client_of_dask() -> Iterator[None]:
    """A client, unless there is one."""
    try:
        from distributed import Client, get_client  # noqa: PLC0415 (no extra: it is there where dask is used)
    except ImportError as error:
        raise MissingExtraError("The backend dask needs its scheduler: pip install distributed") from error
    try:
        get_client()
    except ValueError:
        with Client():
            yield
    else:
        yield


class _ThisProcess:
    def map(self, function: Callable[..., _Result], *arguments: Iterable[Any]) -> Iterator[_Result]:
        return map(function, *arguments)

    def finished(
        self, function: Callable[[_Item], _Result], items: list[_Item]
    ) -> Iterator[tuple[_Item, _Result]]:
        return ((item, function(item)) for item in items)


class _Processes:
    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def map(self, function: Callable[..., _Result], *arguments: Iterable[Any]) -> Iterator[_Result]:
        return self._pool.map(function, *arguments)

    def finished(
        self, function: Callable[[_Item], _Result], items: list[_Item]
    ) -> Iterator[tuple[_Item, _Result]]:
        running = {self._pool.submit(function, item): item for item in items}
        for done in as_completed(running):
            yield running[done], done.result()


class _JoblibWorkers:
    def __init__(self, n_jobs: int | None) -> None:
        self._n_jobs = n_jobs

    def map(self, function: Callable[..., _Result], *arguments: Iterable[Any]) -> Iterator[_Result]:
        calls = (partial(function, *each) for each in zip(*arguments, strict=True))
        return self._run("generator", calls)

    def finished(
        self, function: Callable[[_Item], _Result], items: list[_Item]
    ) -> Iterator[tuple[_Item, _Result]]:
        calls = (partial(_numbered, function, place, item) for place, item in enumerate(items))
        for place, result in self._run("generator_unordered", calls):
            yield items[place], result

    def _run(self, order: str, calls: Iterable[Callable[[], Any]]) -> Iterator[Any]:
        from joblib import Parallel, delayed  # noqa: PLC0415 (an extra)
        from joblib.parallel import get_active_backend  # noqa: PLC0415

        backend, _ = get_active_backend()
        # A backend that cannot give results one by one gives them all at the end.
        order = order if backend.supports_return_generator else "list"
        return iter(Parallel(n_jobs=self._n_jobs, return_as=order)(delayed(_called)(call) for call in calls))


def _called(call: Callable[[], _Result]) -> _Result:
    """The result of a call on a worker."""
    before = _IN_WORKER.set(True)
    try:
        return call()
    finally:
        _IN_WORKER.reset(before)


def _numbered(function: Callable[[Any], _Result], place: int, item: Any) -> tuple[int, _Result]:
    return place, function(item)


@contextmanager
def _worker_pool(n_jobs: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of processes that use one thread each.

    The matrices of a simulation are small: threads of a linear-algebra library make it about ten times slower
    as soon as another process needs the core. The number of threads is read when a process starts, so the
    workers are spawned, and a script that uses them needs `if __name__ == "__main__":`.
    """
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(_ONE_THREAD)
    # Ctrl-C in a terminal reaches every process of the command: this one alone answers it.
    pool = ProcessPoolExecutor(
        n_jobs, get_context("spawn"), initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)
    )
    try:
        yield pool
    except BaseException:
        for process in list((pool._processes or {}).values()):  # from Python 3.14 on: terminate_workers
            process.terminate()  # the shutdown would wait for work that is running
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
