"""The compiler: when it is loaded, and that loading leaves no trace."""

import gc
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from dpfrugal.kernels import compiler


def test_worth_loading__depends_on_the_work_until_numba_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", object())
    assert compiler.worth_loading(0, 100)
    monkeypatch.delitem(sys.modules, "numba")
    assert compiler.worth_loading(100, 100)
    assert not compiler.worth_loading(99, 100)


def test_loading__keeps_the_collector_still_the_first_time_only() -> None:
    what = object()
    with compiler.loading(what):
        assert not gc.isenabled()
    assert gc.isenabled()
    with compiler.loading(what):
        assert gc.isenabled()
    with pytest.raises(ValueError, match="inside"), compiler.loading(object()):
        raise ValueError("inside")
    assert gc.isenabled()


def test_read_only__is_the_same_memory_and_cannot_be_written() -> None:
    array = np.zeros(3)
    view: Any = compiler.read_only(array)
    assert np.shares_memory(view, array)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    array[0] = 1  # the caller's own stays as it was


def test_is_off__says_whether_functions_run_as_they_are_written() -> None:
    command = [sys.executable, "-c", "from dpfrugal.kernels import compiler; print(compiler.is_off())"]
    for switch, answer in (("1", "True"), ("0", "False")):
        found = subprocess.run(command, check=True, capture_output=True, env=os.environ | {"NUMBA_DISABLE_JIT": switch})
        assert found.stdout.decode().strip() == answer
