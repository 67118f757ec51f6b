"""The house of this project, whose files are parsed once for all tests."""

from scripts.house import House

HOUSE = House()
