"""Worker processes for simulations: fresh ones, with one thread each."""

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@contextmanager
def worker_pool(n_jobs: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of processes that do not fight over the cores.

    The matrices here are small: threads of a linear-algebra library cost ten times what they bring as soon as
    another process wants the core. The number of threads is read when a process starts, so the workers are
    started afresh (a script that uses them needs its `if __name__ == "__main__":`).
    """
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(_ONE_THREAD)
    pool = ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)  # who is interrupted does not wait for what is still in the queue
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
