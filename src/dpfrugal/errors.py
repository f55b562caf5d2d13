"""Every error that this package raises on purpose, under one base class.

A message names the parameter, the rule, the parameter's value and what to do instead. It never contains an item: an
error must not carry data (privacy rule 6).
"""


class DPFrugalError(Exception):
    """The base class of all errors of this package.

    >>> import dpfrugal as dpf
    >>> try:
    ...     dpf.private_quantiles(range(1_000), 1.5, dpf.PureDP(epsilon=1.0))
    ... except dpf.DPFrugalError as error:
    ...     print(type(error).__name__)
    ParameterError
    """


class ParameterError(DPFrugalError, ValueError):
    """A public parameter breaks its rule: a quantile outside (0, 1), an epsilon that is not positive.

    >>> import dpfrugal as dpf
    >>> dpf.PureDP(epsilon=0.0)
    Traceback (most recent call last):
    dpfrugal.errors.ParameterError: epsilon must be finite and above 0; 0.0 is not.
    """


class ParameterTypeError(DPFrugalError, TypeError):
    """A public parameter is of a type that cannot be used.

    >>> import dpfrugal as dpf
    >>> dpf.private_quantiles(iter([20.5, 31.0]), 0.5, dpf.PureDP(epsilon=1.0))
    Traceback (most recent call last):
    dpfrugal.errors.ParameterTypeError: data must be held or read again; list_iterator can be read once: list() it.
    """


class ItemError(DPFrugalError, ValueError):
    """Items were refused: NaN or null under ``nan_policy="raise"``, or not one-dimensional.

    >>> import dpfrugal as dpf
    >>> dpf.private_quantiles([1.0, float("nan")], 0.5, dpf.PureDP(epsilon=1.0))
    Traceback (most recent call last):
    dpfrugal.errors.ItemError: The data has NaN or null rows; clean it, or use nan_policy="omit".
    """


class ItemTypeError(DPFrugalError, TypeError):
    """Items were refused because they are not real numbers.

    >>> import dpfrugal as dpf
    >>> dpf.private_quantiles(["a", "b"], 0.5, dpf.PureDP(epsilon=1.0))
    Traceback (most recent call last):
    dpfrugal.errors.ItemTypeError: An item must be a real number, not str.
    """


class TableError(DPFrugalError, ValueError):
    """A file or a stream could not be read as a column of numbers.

    >>> import dpfrugal as dpf
    >>> dpf.private_quantiles("no-such-file.csv", 0.5, dpf.PureDP(epsilon=1.0), column="ms")
    Traceback (most recent call last):
    dpfrugal.errors.TableError: no-such-file.csv: there is no such file.
    """


class PrivacyError(DPFrugalError, RuntimeError):
    """To continue would break the guarantee, so nothing was released.

    >>> import copy, dpfrugal as dpf
    >>> try:
    ...     copy.copy(dpf.PrivateQuantile(0.5, dpf.PureDP(epsilon=1.0)))
    ... except dpf.PrivacyError:
    ...     print("a copy could release the same items")
    a copy could release the same items
    """


class BudgetExceeded(PrivacyError):  # noqa: N818 - the name says what happened
    """A dataset's total does not cover what was asked for; ``left`` is what it still covers, of the same kind.

    >>> import tempfile, dpfrugal as dpf
    >>> ledger = dpf.Ledger(f"{tempfile.mkdtemp()}/budget.db", total=dpf.PureDP(epsilon=0.5))
    >>> try:
    ...     dpf.private_quantiles(range(1_000), 0.5, dpf.PureDP(epsilon=1.0), ledger=ledger, dataset="survey")
    ... except dpf.BudgetExceeded as refused:
    ...     print(refused.left)
    ε=0.5
    """

    def __init__(self, message: str, left: object = None) -> None:
        super().__init__(message)
        self.left = left


class ReplayError(PrivacyError):
    """A checkpoint is stale, or nothing proves it fresh: its items could be released a second time.

    >>> import tempfile, dpfrugal as dpf
    >>> path = f"{tempfile.mkdtemp()}/items.private"
    >>> dpf.PrivateQuantile(0.5, dpf.PureDP(epsilon=1.0)).save(path)
    >>> try:
    ...     dpf.PrivateQuantile.load(path)
    ... except dpf.ReplayError:
    ...     print("no ledger proves it fresh")
    no ledger proves it fresh
    """


class LedgerError(DPFrugalError, RuntimeError):
    """A ledger could not be opened, read or written; nothing was released that it should have recorded.

    >>> import pathlib, tempfile, dpfrugal as dpf
    >>> path = pathlib.Path(tempfile.mkdtemp(), "budget.db")
    >>> _ = path.write_text("this is no ledger")
    >>> try:
    ...     dpf.Ledger(path)
    ... except dpf.LedgerError:
    ...     print("refused")
    refused
    """


class CheckpointError(DPFrugalError, RuntimeError):
    """A checkpoint could not be written, or could not be restored because it is damaged or of another kind.

    >>> import tempfile, dpfrugal as dpf
    >>> path = f"{tempfile.mkdtemp()}/items.private"
    >>> dpf.PrivateQuantile(0.5, dpf.PureDP(epsilon=1.0)).save(path)
    >>> try:
    ...     dpf.DPFrugal1U.load(path)
    ... except dpf.CheckpointError:
    ...     print("of another kind")
    of another kind
    """


class CheckpointWarning(UserWarning):
    """A checkpoint is raw private state, and others may read it.

    >>> import os, tempfile, warnings, dpfrugal as dpf
    >>> path = f"{tempfile.mkdtemp()}/items.private"
    >>> ledger = dpf.Ledger(f"{path}.db", total=dpf.PureDP(epsilon=1.0))
    >>> running = dpf.PrivateQuantile(0.5, dpf.PureDP(epsilon=1.0), ledger=ledger, dataset="clicks")
    >>> running.save(path)
    >>> os.chmod(path, 0o644)
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     running = dpf.PrivateQuantile.load(path, ledger=ledger)
    >>> told[0].category.__name__
    'CheckpointWarning'
    """
