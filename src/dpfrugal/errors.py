"""Every error that this package raises on purpose, under one base class.

A message names the parameter, the rule, the parameter's value and what to do instead. It never contains an item: an
error must not carry data (privacy rule 6).
"""


class DPFrugalError(Exception):
    """The base class of all errors of this package."""


class ParameterError(DPFrugalError, ValueError):
    """A public parameter breaks its rule: a quantile outside (0, 1), an epsilon that is not positive."""


class ParameterTypeError(DPFrugalError, TypeError):
    """A public parameter is of a type that cannot be used."""


class ItemError(DPFrugalError, ValueError):
    """Items were refused: NaN or null under ``nan_policy="raise"``, or not one-dimensional."""


class ItemTypeError(DPFrugalError, TypeError):
    """Items were refused because they are not real numbers."""


class TableError(DPFrugalError, ValueError):
    """A file or a stream could not be read as a column of numbers."""


class PrivacyError(DPFrugalError, RuntimeError):
    """To continue would break the guarantee, so nothing was released."""


class BudgetExceeded(PrivacyError):  # noqa: N818 - the name says what happened
    """A dataset's total does not cover what was asked for; ``left`` is what it still covers, of the same kind."""

    def __init__(self, message: str, left: object = None) -> None:
        super().__init__(message)
        self.left = left


class ReplayError(PrivacyError):
    """A checkpoint is stale, or nothing proves it fresh: its items could be released a second time."""


class LedgerError(DPFrugalError, RuntimeError):
    """A ledger could not be opened, read or written; nothing was released that it should have recorded."""


class CheckpointError(DPFrugalError, RuntimeError):
    """A checkpoint could not be written, or could not be restored because it is damaged or of another kind."""


class CheckpointWarning(UserWarning):
    """A checkpoint is raw private state, and others may read it."""
