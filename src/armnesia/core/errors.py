"""One hierarchy of errors: a message names the parameter, the value it got and what would be accepted."""


class ArmnesiaError(Exception):
    """Everything armnesia refuses, it refuses with a subclass of this."""


class InvalidInputError(ArmnesiaError, ValueError):
    """A value outside what a parameter accepts."""


class InvalidLogError(InvalidInputError):
    """A log that cannot be read as logged decisions: columns, types, rewards or actions are wrong."""


class ImpossibleDeletionError(InvalidInputError):
    """A deletion of records that the statistics cannot contain."""


class UnsupportedError(ArmnesiaError):
    """A combination (unlearner, learner, request, level) for which no guarantee is known."""


class VaultError(ArmnesiaError):
    """A vault that cannot be opened, read or changed as asked."""


class VaultBusyError(VaultError):
    """A vault that another process is changing just now: nothing was changed, and trying again may help."""


class MissingExtraError(ArmnesiaError, ImportError):
    """A feature whose optional dependency is not installed."""

    @classmethod
    def naming(cls, feature: str, extra: str) -> "MissingExtraError":
        """Say which extra brings the feature.

        >>> print(MissingExtraError.naming("Reading files", "engines"))
        Reading files needs an optional dependency: pip install "armnesia[engines]"
        """
        return cls(f'{feature} needs an optional dependency: pip install "armnesia[{extra}]"')


class UndeclaredActionsWarning(UserWarning):
    """The action set was taken from the data; declare it, because deleting rows must not change it."""


class UnprovedCalibrationWarning(UserWarning):
    """The classic Gaussian calibration is used for ε > 1, where its proof does not apply."""
