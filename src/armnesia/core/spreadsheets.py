"""Cells of tables that people open with a spreadsheet."""

import re

_BEGINS_A_FORMULA = re.compile(
    r"(?P<begin>(?:^|[;,|\t\r\n])[\s\"]*)(?=\'*[=+@\uff1d\uff0b\uff0d\uff20\t\r\n-])"
)


def as_text(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: an apostrophe stands before one that it might.

    That is also done after a character that may separate cells, where the file is read by other rules, and
    for the wide forms of these characters. Another apostrophe stands before apostrophes that are followed by
    such a character, so that two cells stay two.

    >>> [as_text(cell) for cell in ("=1+1", "'=1+1", "'t Hooft", "ann", ";=3", "a@b.example")]
    ["'=1+1", "''=1+1", "'t Hooft", 'ann', ";'=3", 'a@b.example']
    """
    return _BEGINS_A_FORMULA.sub(r"\g<begin>'", cell)
