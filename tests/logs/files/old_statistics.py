"""Parquet files with the statistics that writers of old made: in the order of signed bytes."""

import struct
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def write_old_statistics(path: Path, table: pa.Table) -> None:
    """Write a table as one row group; the bounds of its users are as parquet-mr 1.8 wrote them.

    The footer is in Thrift's compact protocol: `max` and `min` are fields 1 and 2 of the statistics of a
    column, `null_count` is 3, `max_value` and `min_value`, which pyarrow writes, are 5 and 6.
    """
    pq.write_table(table, path, compression="none", use_dictionary=False)
    texts = [text.encode() for text in table["user"].to_pylist() if text is not None]
    nulls = bytes([2 * table["user"].null_count])
    new = b"\x36" + nulls + b"\x28" + _sized(max(texts)) + b"\x18" + _sized(min(texts)) + b"\x11\x11"
    low, high = _bounds_of_signed_bytes(texts)
    old = b"\x18" + _sized(high) + b"\x18" + _sized(low) + b"\x16" + nulls
    content = path.read_bytes()
    (size,) = struct.unpack("<I", content[-8:-4])
    footer = content[-8 - size : -8]
    assert footer.count(new), "pyarrow writes other statistics"
    footer = footer.replace(new, old)
    path.write_bytes(content[: -8 - size] + footer + struct.pack("<I", len(footer)) + b"PAR1")


def _bounds_of_signed_bytes(texts: Sequence[bytes]) -> tuple[bytes, bytes]:
    in_order = sorted(texts, key=lambda text: [byte - 256 if byte > 127 else byte for byte in text])
    return in_order[0], in_order[-1]


def _sized(text: bytes) -> bytes:
    assert len(text) < 128
    return bytes([len(text)]) + text
