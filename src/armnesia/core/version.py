"""The version, for everything that stands below `armnesia` itself."""

__version__ = "0.1.0"
