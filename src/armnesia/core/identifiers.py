"""Identifiers of people: which spellings name the same person, and how each type of identifier is written.

A vault fixes one type for all of its people. Every id that comes in, and every name in a request, is brought
to the one spelling of that type before it is compared.
"""

import re
import unicodedata
from enum import StrEnum

from armnesia.core.errors import InvalidInputError, InvalidNameError

LARGEST_EXACT = 2**53
"""From here on floats skip whole numbers, so that a whole float no longer stands for one integer."""
SHORT_FLOATS_EXACT_BELOW = 2**24
"""The same for floats of 32 bits."""

_INTEGER = re.compile(r"([+-]?)([0-9]+)(\.0*)?")
_PLAIN_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,37}")
_WHOLE_FLOAT = re.compile(r"-?[0-9]+\.0*|-?[0-9](?:\.[0-9]+)?e\+[0-9]+", re.IGNORECASE)


class UserType(StrEnum):
    """How the people of a vault are named.

    >>> [UserType.INTEGER.normalised(name) for name in ("1", "1.0", " 01 ", "+1", "-0", "1e3", "ann")]
    ['1', '1', '1', '1', '0', None, None]
    >>> UserType.TEXT.normalised(" Ann "), UserType.TEXT.normalised("01")
    ('Ann', '01')
    """

    INTEGER = "integer"
    """Integers in any spelling are one: with a sign, leading zeros, white space around, or zeros after a
    decimal point."""
    TEXT = "text"
    """Text in Unicode's normal form C, without white space around it; case counts."""

    @classmethod
    def named(cls, name: object) -> "UserType":
        """The type of this name; any other is refused.

        >>> UserType.named("number")
        Traceback (most recent call last):
        armnesia.core.errors.InvalidInputError: user_type must be integer or text; got 'number'
        """
        try:
            return cls(str(name))
        except ValueError:
            raise InvalidInputError(f"user_type must be integer or text; got {name!r}") from None

    def normalised(self, name: str) -> str | None:
        """The one spelling of a name, empty if there is none; None if it cannot be a name of this type.

        Text from 2⁵³ on with a decimal point is no integer: it was a float, and may stand for several.

        >>> UserType.INTEGER.normalised("9007199254740993"), UserType.INTEGER.normalised("9007199254740992.0")
        ('9007199254740993', None)
        """
        if self is UserType.TEXT:
            return (name if name.isascii() else unicodedata.normalize("NFC", name)).strip()
        return _integer(name.strip())


PLAIN = {
    UserType.INTEGER: "0|-?[1-9][0-9]*",
    UserType.TEXT: "([!-~]([ -~]*[!-~])?)?",
}
"""Patterns of names that are their own normal form; another spelling of such a name matches none of them."""


def _integer(name: str) -> str | None:
    found = _INTEGER.fullmatch(name)
    if found is None:
        return None if name else ""
    sign, digits, point = found.groups()
    digits = digits.lstrip("0") or "0"
    if point and (len(digits) > len(str(LARGEST_EXACT)) or int(digits) >= LARGEST_EXACT):
        return None
    return f"-{digits}" if sign == "-" and digits != "0" else digits


def is_plain_integer(name: str) -> bool:
    """Whether this is how integers of up to 38 digits are usually written.

    >>> [is_plain_integer(name) for name in ("10", "-3", "007", "1.0", " 1", "ann")]
    [True, True, False, False, False, False]
    """
    return _PLAIN_INTEGER.fullmatch(name) is not None


def looks_like_float(name: str) -> bool:
    """Whether this looks like an integer that became a float, as in a column with missing values.

    >>> [looks_like_float(name) for name in ("7.0", "1e+16", "7", "7.5", "ann")]
    [True, True, False, False, False]
    """
    return _WHOLE_FLOAT.fullmatch(name) is not None


def normalised_request(name: str, user_type: UserType | None) -> str:
    """The spelling of a name in a request, empty if there is none; refused if it is not of this type.

    Before a vault has a type, a name is accepted only if its spelling does not depend on the type.

    >>> normalised_request("1.0", UserType.INTEGER), normalised_request("ann", None)
    ('1', 'ann')
    >>> normalised_request("ann", UserType.INTEGER)
    Traceback (most recent call last):
    armnesia.core.errors.InvalidNameError: people are named by integers in this vault; got 'ann'
    >>> normalised_request("01", None)
    Traceback (most recent call last):
    armnesia.core.errors.InvalidNameError: the vault does not know yet whether its people are named by
    integers or by text; ingest a log first, or write the integer 1 for '01'
    """
    found = (user_type or UserType.TEXT).normalised(name)
    if found is None:
        only = ", and by floats only below 2**53" if looks_like_float(name.strip()) else ""
        sentence = f"people are named by integers in this vault{only}; got {name!r}"
        raise InvalidNameError(sentence, name, "type")
    as_integer = found if user_type is not None else UserType.INTEGER.normalised(name)
    if as_integer not in (None, found):
        raise InvalidNameError(
            "the vault does not know yet whether its people are named by integers or by text; ingest a log"
            f" first, or write the integer {as_integer} for {name!r}",
            name,
            "type",
        )
    return found
