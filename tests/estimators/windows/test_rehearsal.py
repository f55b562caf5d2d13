"""Between the count in the ledger and the release nothing is loaded or compiled: a kill in between loses a window."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import dpfrugal as dpf
from dpfrugal.budget.spending import Account

def ready():
    modules = set(sys.modules)
    kernels = [sys.modules[name] for name in modules if name.startswith("dpfrugal.kernels")]
    parts = [part for kernel in kernels for part in vars(kernel).values() if hasattr(part, "signatures")]
    compiled = {{id(part): len(part.signatures) for part in parts}}
    return modules, sum(compiled.values())

def before_noise(account, real=Account.before_noise):
    real(account)
    seen.append(ready())

seen, ONE = [], dpf.PureDP(epsilon=1.0)
Account.before_noise = before_noise
estimator = dpf.{made}
estimator.update_many({items})
estimator.release()
modules, compiled = ready()
assert not modules - seen[-1][0], sorted(modules - seen[-1][0])
assert compiled == seen[-1][1], (compiled, seen[-1][1])
"""


@pytest.mark.parametrize(
    ("made", "items"),
    [
        ("DPFrugal1U(0.5, ONE)", "range(1000)"),
        ("PrivateQuantile(0.5, ONE)", "range(100_000)"),
        ("KeyedDPFrugal1U(0.5, ONE, keys=['a', 'b'])", "['a', 'b'] * 500, range(1000)"),
        ("WindowQuantile([0.1, 0.5], ONE)", "range(1000)"),
        ("KeyedWindowQuantile(0.5, ONE, keys=['a', 'b'])", "['a', 'b'] * 500, range(1000)"),
        ("KeyedWindowQuantile([0.1, 0.5], ONE, keys=range(1000))", "list(range(1000)) * 9, range(9000)"),
        (
            "KeyedWindowQuantile(0.5, ONE, discover_keys=dpf.ApproxDP(epsilon=1.0, delta=1e-6))",
            "list(range(1000)) * 90, range(90_000)",
        ),
    ],
)
def test_release__loads_and_compiles_nothing_after_the_count_in_the_ledger(made: str, items: str) -> None:
    program = PROGRAM.format(made=made, items=items)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
