"""Cells of tables that people open with a spreadsheet."""

_BEGINS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def as_text(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: an apostrophe stands before one that it might.

    Another one stands before apostrophes that are followed by such a character, so that two cells stay two.

    >>> [as_text(cell) for cell in ("=1+1", "'=1+1", "'t Hooft", "ann")]
    ["'=1+1", "''=1+1", "'t Hooft", 'ann']
    """
    return f"'{cell}" if cell.lstrip("'").startswith(_BEGINS_A_FORMULA) else cell
