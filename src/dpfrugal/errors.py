"""Every error this package raises on purpose, under one roof.

A message names the parameter, the rule, the parameter's value and what to do instead. It never contains an
item: data must not travel in an error (privacy rule 6).
"""


class DPFrugalError(Exception):
    """The root of all errors of this package."""


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
    """Going on would break the promised guarantee, so nothing was released."""
