"""Worker processes for simulations, with one thread each."""

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@contextmanager
def worker_pool(n_jobs: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of processes that use one thread each.

    The matrices of a simulation are small: threads of a linear-algebra library make it about ten times slower
    as soon as another process needs the core. The number of threads is read when a process starts, so the
    workers are spawned, and a script that uses them needs `if __name__ == "__main__":`.
    """
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(_ONE_THREAD)
    pool = ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)  # after an interrupt, queued work is not waited for
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
