"""Booleans in the text of a whole row: one value, however a source spells them."""

import re
from collections.abc import Sequence

from armnesia.logs.user_names import end_of_part

_PLAIN = {"4:true": "1:1", "5:false": "1:0"}
_ANY_SPELLING = re.compile("4:true|5:false", re.IGNORECASE)


def with_plain_booleans(others: Sequence[str], user_place: int | None) -> list[str]:
    """Write true and false, in any case, as 1 and 0 in the texts of whole rows, as SQLite stores them.

    Not in the user's part, which stands at `user_place`: that is a name.

    >>> with_plain_booleans(["4:TRUE5:False4:true", "7:x4:true-"], 2)
    ['1:11:04:true', '7:x4:true-']
    """
    return [_with_plain(text, user_place) if _ANY_SPELLING.search(text) else text for text in others]


def _with_plain(text: str, user_place: int | None) -> str:
    parts: list[str] = []
    start = 0
    while start < len(text):
        end = end_of_part(text, start)
        part = text[start:end]
        parts.append(part if len(parts) == user_place else _PLAIN.get(part.lower(), part))
        start = end
    return "".join(parts)
