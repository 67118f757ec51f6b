"""New files in the places of old ones: with the same access, in one step, and not where somebody else wrote.

On Linux the two files change their names in one step (`renameat2` with `RENAME_EXCHANGE`). What was in the
place is looked at afterwards, under the name of the new file: a file of somebody else is put back, and an old
one is removed. Where the system cannot do so, a file that is replaced between the last look and the step is
lost; nothing else is done in between.
"""

import ctypes
import errno
import os
import stat
from functools import lru_cache
from typing import Any, Literal

from armnesia.core.errors import InvalidLogError
from armnesia.core.files import Stamp, stamp_if_there, stamp_of, sync_folder
from armnesia.logs.erasing.plan import FileSwap

_EXCHANGE, _HERE = 2, -100  # RENAME_EXCHANGE and AT_FDCWD of Linux
_CANNOT_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM}
_OF_CONTENT = ("security.ima", "security.evm")
"""Attributes that hold a digest or signature of the content, which a new file cannot have."""


def reserve(staged: str) -> None:
    """Make an empty file for a new one that nobody else can read until it has the access of the old one."""
    os.close(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def copy_access(path: str, staged: str) -> None:
    """Let the same people read the new file as the old one: owner, mode, access control lists, attributes."""
    status, new = os.stat(path), os.stat(staged)
    if (status.st_uid, status.st_gid) != (new.st_uid, new.st_gid):
        try:
            os.chown(staged, status.st_uid, status.st_gid)
        except OSError:
            raise _not_given(path, "user" if status.st_uid != new.st_uid else "group") from None
    _copy_attributes(path, staged)  # before the mode, which would widen a list that the folder has given
    os.chmod(staged, stat.S_IMODE(status.st_mode))
    if _attributes(staged) != _attributes(path):
        raise _lost_attributes(path)


def _not_given(path: str, to: Literal["user", "group"]) -> InvalidLogError:
    whom, remedy = {
        "user": ("user, whom", "as its owner"),
        "group": ("group, which", "as a member of that group, or give the file another one"),
    }[to]
    return InvalidLogError(
        f"rows of {path!r} cannot be erased: it belongs to another {whom} a new file cannot be given to; run"
        f" the erasure {remedy}"
    )


def _copy_attributes(path: str, staged: str) -> None:
    wanted, found = _attributes(path), _attributes(staged)
    if any(name in wanted for name in _OF_CONTENT):
        raise _lost_attributes(path)
    try:
        for name in found.keys() - wanted.keys():
            os.removexattr(staged, name)
        for name, value in wanted.items():
            if found.get(name) != value:
                os.setxattr(staged, name, value)
    except OSError:
        raise _lost_attributes(path) from None


def _attributes(path: str) -> dict[str, bytes]:
    """The extended attributes of a file, among which Linux has its access control lists."""
    if not hasattr(os, "listxattr"):
        return {}
    try:
        return {name: os.getxattr(path, name) for name in os.listxattr(path)}
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.EOPNOTSUPP):
            return {}
        raise


def _lost_attributes(path: str) -> InvalidLogError:
    return InvalidLogError(
        f"rows of {path!r} cannot be erased: it has extended attributes, such as an access control list, that"
        " a new file cannot be given; run the erasure as a user who may set them, or remove them"
    )


def is_done(swap: FileSwap) -> bool:
    """Whether a new file has taken its place."""
    return stamp_if_there(swap.path) == swap.new


def check_swap(swap: FileSwap) -> None:
    """Refuse a file that somebody else has changed; one that a new file has displaced gets its place back."""
    found, beside = stamp_if_there(swap.path), stamp_if_there(swap.staged)
    if found == swap.new and beside not in (None, swap.old):
        # Killed after the exchange: what was in the place was no longer the old file.
        _put_back(swap)
        raise changed(swap.path)
    if found not in (swap.new, swap.old):
        raise changed(swap.path)
    if found == swap.old and beside != swap.new:
        raise InvalidLogError(
            f"rows of {swap.path!r} cannot be erased: the new file that was prepared is gone or has changed"
        )


def put_in_place(swap: FileSwap) -> None:
    """Let a new file take its place, unless somebody has put another one there since `check_swap` looked."""
    # Hadoop keeps checksums beside a file, and refuses one that they do not fit; one without them is read.
    remove(os.path.join(os.path.dirname(swap.path), f".{os.path.basename(swap.path)}.crc"))
    if not _exchange(swap.staged, swap.path):
        if stamp_if_there(swap.path) != swap.old:
            raise changed(swap.path)
        os.replace(swap.staged, swap.path)
    elif stamp_if_there(swap.staged) != swap.old:
        _put_back(swap)
        raise changed(swap.path)
    sync_folder(os.path.dirname(swap.path))


def remove_old(swap: FileSwap) -> None:
    """Remove the old file, if it has the name of the new one now."""
    if stamp_if_there(swap.staged) == swap.old:
        remove(swap.staged)


def remove_prepared(swap: FileSwap) -> None:
    """Remove the new file of a swap, or the old one if they have changed their names; no other one."""
    if stamp_if_there(swap.staged) in (swap.new, swap.old):
        remove(swap.staged)


def remove(path: str) -> None:
    """Remove a file, if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    sync_folder(os.path.dirname(path))


def changed(path: str) -> InvalidLogError:
    """Refuse a file that somebody has changed."""
    return InvalidLogError(
        f"rows of {path!r} cannot be erased: the file has changed since the erasure was planned"
    )


def _put_back(swap: FileSwap) -> None:
    """Give a file of somebody else its place again; unless a third one is there, which is left alone."""
    if stamp_if_there(swap.path) == swap.new:
        _exchange(swap.staged, swap.path)
        sync_folder(os.path.dirname(swap.path))


def _exchange(one: str, other: str) -> bool:
    """Let two files of a folder change their names in one step; False if the system cannot do so."""
    rename = _renameat2()
    if rename is None:
        return False
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), other)


@lru_cache
def _renameat2() -> Any:
    """The function of the C library; None where it has none."""
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return function


def stamp_of_synced(path: str) -> Stamp:
    """Bring a file onto the disk; its stamp."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return stamp_of(path)
