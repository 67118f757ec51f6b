"""Which row is which: identities that stay the same whenever, and from whichever source, a row is read.

A row is known by its id or, without ids, by its whole content and the number of earlier rows with the same
content in its source. So the same file twice, or a file that overlaps an earlier one, adds no rows, and rows
that occur several times in one source stay distinct.
"""

from collections.abc import Callable

from armnesia.logs.rows import Rows


def identities(record_identities: Callable[..., list[bytes]], rows: Rows) -> list[bytes]:
    """Give each row of a chunk its identity, by the keyring's `record_identities`.

    The rows of selected users have the same identities as among all rows: equal rows have the same user.

    >>> joined = lambda kind, *columns: ["/".join((kind, *parts)) for parts in zip(*columns)]
    >>> identities(joined, Rows(range(2), [0, 0], [5, 5], [None, None], None, ["same", "same"], [0, 1]))
    ['content/same/0', 'content/same/1']
    >>> identities(joined, Rows(range(1), [0], [5], [None], ["a-17"], None))
    ['id/a-17']
    """
    if rows.ids is not None:
        return record_identities("id", rows.ids)
    if rows.contents is None:
        raise ValueError("rows have neither ids nor contents: open their source with whole_rows=True")
    return record_identities("content", rows.contents, list(map(str, rows.ordinals)))
