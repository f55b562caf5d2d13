"""Forks that Python does not hear of, as those of a C library: no hook runs, and still nothing is released twice."""

import ctypes
import os
import subprocess
import sys

import pytest

FORK = """
import ctypes, os, sys
import dpfrugal as dpf
from dpfrugal.privacy import noise
from dpfrugal.privacy.guarantees import Sensitivity

hooks = []
os.register_at_fork(after_in_child=lambda: hooks.append("ran"))
SMALL = dpf.PureDP(epsilon=0.01)

def draws(count):
    return noise.add_noise([0] * count, SMALL, Sensitivity.of(2))

def flips(items=2000):  # of a walk with coins and noise of its own
    walk = dpf.DPFrugal1U(0.5, dpf.PureDP(epsilon=1e6))
    walk.update_many([0.0, 1e9] * (items // 2))
    return walk.release().value

def forked(work):
    '''What the parent and the child of a fork from C say.'''
    read, write = os.pipe()
    if ctypes.PyDLL(None).fork() == 0:
        try:
            os.write(write, repr((hooks, work())).encode())
        finally:
            os._exit(0)
    mine = repr(([], work()))
    os.close(write)
    os.wait()
    with os.fdopen(read, "rb") as theirs:
        said = theirs.read().decode()
    assert said.startswith("([], "), said  # no hook ran, and the child came to its end
    return mine, said
"""


@pytest.fixture(autouse=True)
def _needs_fork() -> None:
    if not (hasattr(os, "fork") and hasattr(ctypes.PyDLL(None), "fork")):
        pytest.skip("this system has no fork")


def passes(program: str) -> None:
    subprocess.run([sys.executable, "-c", FORK + program], check=True, timeout=120)


@pytest.mark.parametrize("count", [16, 200])
def test_forks__draw_noise_of_their_own_in_parent_and_child(count: int) -> None:
    """Sixteen numbers of scale 200 are the same by chance once in 10^40 times."""
    passes(f"draws({count})\nmine, theirs = forked(lambda: draws({count}))\nassert mine != theirs")


def test_forks__would_draw_the_same_noise_from_a_generator_of_the_process() -> None:
    """What the test above guards against: noise from a state that both processes have."""
    passes(
        "import random\ndraws(16)\nstate = random.Random(1)\n"
        "noise.measurement = lambda g, s: lambda values: [value + state.randrange(1000) for value in values]\n"
        "mine, theirs = forked(lambda: draws(16))\nassert mine == theirs, (mine, theirs)"
    )


def test_forks__toss_coins_of_their_own_in_parent_and_child() -> None:
    """Ten walks of 2,000 coins each end at the same ten places by chance once in 10^14 times."""
    passes("flips()\nmine, theirs = forked(lambda: [flips() for _ in range(10)])\nassert mine != theirs")
