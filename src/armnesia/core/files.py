"""Files that are written completely or not at all, and read only if they are plain files."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO, NamedTuple

from armnesia.core.errors import InvalidInputError
from armnesia.core.randomness import secret_bytes

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
_NO_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # the latter on Windows alone


class Stamp(NamedTuple):
    """Size and time of change, in nanoseconds, of a file."""

    size: int
    changed: int


def stamp_of(path: str | PathLike[str]) -> Stamp:
    """Size and time of change of a file, which say whether it has changed; OSError if there is none."""
    status = os.stat(path)
    return Stamp(status.st_size, status.st_mtime_ns)


def open_plain(path: str | PathLike[str], *, update: bool = False) -> BinaryIO:
    """Open a plain file for reading, or also for writing; a folder, device or pipe raises an OSError.

    Opening a pipe in the usual way waits until somebody writes into it.

    >>> open_plain("/")
    Traceback (most recent call last):
    IsADirectoryError: [Errno 21] Is a directory: '/'
    """
    descriptor = os.open(path, (os.O_RDWR if update else os.O_RDONLY) | _NO_WAITING)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "r+b" if update else "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "it is not a plain file", str(path))


def read_plain(path: str | PathLike[str], largest: int = 1 << 24) -> bytes:
    """Read a plain file of at most so many bytes; refuse any other.

    >>> read_plain("no-such-file")
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: no-such-file cannot be read: No such file or directory
    """
    try:
        with open_plain(path) as file:
            size = os.fstat(file.fileno()).st_size
            data = b"" if size > largest else file.read(min(max(size, 1 << 16), largest) + 1)
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None
    if max(size, len(data)) > largest:
        raise InvalidInputError(f"{path} cannot be read: it has more than {largest:,} bytes")
    return data


def refuse_null_characters(path: str | PathLike[str]) -> None:
    """Refuse what the operating system takes for no path.

    >>> refuse_null_characters("a" + chr(0))
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: a path must have no null character; got 'a\\x00'
    """
    if "\0" in str(path):
        raise InvalidInputError(f"a path must have no null character; got {str(path)!r}")


def check_new_file(path: str | PathLike[str]) -> None:
    """Refuse a file that exists, or that cannot be made, before an operation does anything.

    >>> check_new_file("no-such-folder/new")
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: the file must be in a folder that exists; no-such-folder does not
    """
    refuse_null_characters(path)
    file = Path(path)
    if file.exists():
        raise InvalidInputError(f"the file must be a new one; {file} exists already")
    _check_writable(file.parent, "the file")


def check_new_folder(path: str | PathLike[str]) -> None:
    """Refuse a folder that has files, or that cannot be made, before an operation does anything.

    >>> check_new_folder("no-such-folder/new")
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: the new folder must be in a folder that exists; no-such-folder
    does not
    """
    refuse_null_characters(path)
    folder = Path(path)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InvalidInputError(f"the folder must be a new one; {folder} exists already and is not empty")
    _check_writable(folder if folder.exists() else folder.parent, "the new folder")


def may_write(path: str | PathLike[str]) -> bool:
    """Whether this user may write to a file, or make and remove files in a folder.

    >>> may_write("/"), may_write("no-such-folder")
    (..., False)
    """
    wanted = os.W_OK | (os.X_OK if os.path.isdir(path) else 0)
    return os.access(path, wanted, effective_ids=os.access in os.supports_effective_ids)


def _check_writable(parent: Path, what: str) -> None:
    if not parent.is_dir():
        raise InvalidInputError(f"{what} must be in a folder that exists; {parent} does not")
    if not may_write(parent):
        raise InvalidInputError(f"{what} must be in a writable folder; {parent} is not writable")


@contextmanager
def atomic_write(path: str | PathLike[str], *, mode: int = 0o666, replace: bool = False) -> Iterator[Path]:
    """Lend an empty temporary file beside `path`; at the end of the block it takes that name in one step.

    The temporary file is on the disk before it is renamed, so a crash leaves the old file or the new one,
    never a part of one. If the block raises, the temporary file is removed; if the process is killed, it
    stays as `NAME.….new`. An existing file raises FileExistsError, or is replaced with `replace`. `mode` is
    the mode of a new file, of which the umask takes its part, as in `os.open`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder) / "numbers.txt"
    ...     with atomic_write(target) as temporary:
    ...         _ = temporary.write_text("1 2 3")
    ...         exists_in_the_block = target.exists()
    ...     exists_in_the_block, target.read_text()
    (False, '1 2 3')
    """
    refuse_null_characters(path)
    path = Path(path)
    if not replace and os.path.lexists(path):  # before the work of the block; the link below checks again
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    if not path.name:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    temporary = path.with_name(f"{path.name}.{secret_bytes(6).hex()}.new")
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    try:
        yield temporary
        with temporary.open("r+b") as file:
            os.fsync(file.fileno())
        if replace:
            temporary.replace(path)
        else:
            _rename_unless_exists(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


@contextmanager
def output_file(path: str | PathLike[str], *, replace: bool) -> Iterator[Path]:
    """The same for a file that a command writes: what is in the way is said in one sentence.

    >>> with output_file("no-such-folder/new", replace=False):
    ...     pass
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: the folder of 'no-such-folder/new' does not exist
    """
    try:
        with atomic_write(path, replace=replace) as temporary:
            yield temporary
    except FileExistsError:
        raise InvalidInputError(
            f"{str(path)!r} exists already; choose another file, or replace it with --replace (replace=True)"
        ) from None
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInputError(f"the folder of {str(path)!r} does not exist") from None


def _rename_unless_exists(temporary: Path, path: Path) -> None:
    """Rename a file; unlike `os.rename`, this fails if the new name exists."""
    try:
        os.link(temporary, path)
        return
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    # Some file systems (FAT, many network drives) have no hard links: an empty file reserves the name first.
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        temporary.replace(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def sync_folder(folder: str | PathLike[str]) -> None:
    """Bring the names in a folder onto the disk; only POSIX systems open folders."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
