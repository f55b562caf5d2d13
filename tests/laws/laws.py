"""What every estimator obeys, whichever it is. Each law is a function that fails where an estimator breaks it.

``test_*.py`` run them over all ``KINDS``; ``test_broken_estimators.py`` shows that each of them can fail.
"""

import copy
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpfrugal as dpf
from tests.laws.kinds import Kind
from tests.support.bits import replace_bits_of_choices
from tests.support.noise_tape import Fixed, Seeded, replace_noise
from tests.support.repository import ROOT

SENTINEL = 4242.0  # an item that no message and no text may show


def same_state_as_one_batch(kind: Kind, items: NDArray[Any]) -> None:
    """A batch, the same items one by one, and any mixture of both end in the same state."""
    whole = kind.raw(kind.fed(items))
    assert kind.raw(kind.fed(*np.split(items, range(1, items.size)))) == whole, "batches of one item"
    if kind.takes_single_items:
        single, mixed, half = kind.make(), kind.make(), items.size // 2
        for item in items.tolist():
            single.update(item)
        for item in items[:half].tolist():
            mixed.update(item)
        mixed.update_many(items[half:])
        assert single.items == mixed.items == items.size
        assert kind.raw(single) == kind.raw(mixed) == whole


def cuts_leave_no_trace(kind: Kind, items: NDArray[Any], cuts: list[int]) -> None:
    """Where a stream is cut into batches changes nothing."""
    assert kind.raw(kind.fed(*np.split(items, sorted(cuts)))) == kind.raw(kind.fed(items))


def containers_leave_no_trace(kind: Kind, batch: Callable[[], Any], numbers: list[int]) -> None:
    """The container and the type of the numbers change nothing."""
    estimator = kind.make()
    kind.feed(estimator, batch(), count=len(numbers))
    assert kind.raw(estimator) == kind.raw(kind.fed(numbers))


def refused_batch_changes_nothing(kind: Kind, bad: Callable[[], Any], count: int | None = None) -> None:
    """A refused batch leaves the state and the releases as they were, and its message shows no item."""
    estimator = kind.fed(np.linspace(-5, 40, 4_321))
    if kind.takes_single_items:
        estimator.update(3.0)
    shown = kind.release(estimator) if kind.private else None
    kind.feed(estimator, np.linspace(-5, 40, 50))
    before = kind.raw(estimator)
    with pytest.raises(dpf.DPFrugalError) as refusal:
        kind.feed(estimator, bad(), count=count)
    assert isinstance(refusal.value, TypeError | ValueError)
    assert "4242" not in str(refusal.value), "an item is in the message"
    assert kind.raw(estimator) == before
    if kind.needs_items:  # where a release does not take noise
        assert estimator.release() is shown


def refused_item_changes_nothing(kind: Kind, bad: Any) -> None:
    """Nor does a refused item."""
    estimator = kind.fed([SENTINEL] * 5)
    before = kind.raw(estimator)
    with pytest.raises(dpf.DPFrugalError) as refusal:
        estimator.update(bad)
    assert isinstance(refusal.value, TypeError | ValueError)
    assert "4242" not in str(refusal.value)
    assert kind.raw(estimator) == before


def missing_items_keep_their_positions(kind: Kind, batch: Any, holes: list[float]) -> None:
    """Under ``nan_policy="omit"`` an item that is missing is counted, and the later ones meet the coins they would."""
    expected = kind.make(nan_policy="omit")
    for position, item in enumerate(holes):
        kind.feed(expected, [item], position)
    assert expected.items == len(holes)
    assert kind.raw(kind.fed(batch, nan_policy="omit")) == kind.raw(expected)
    if kind.takes_single_items:
        single = kind.make(nan_policy="omit")
        for item in holes:
            single.update(item)
        assert kind.raw(single) == kind.raw(expected)


def omitting_is_not_dropping(kind: Kind) -> None:
    """If missing items lost their coins, the later items would meet those of the stream without them."""
    whole = np.random.default_rng(8).normal(20, 8, 2_000)
    holed = np.insert(whole, 0, [np.nan] * 7)
    assert kind.points(kind.fed(holed, nan_policy="omit")) != kind.points(kind.fed(whole))


def text_and_attributes_show_no_raw_state(kind: Kind) -> None:
    """Two estimators that are fed other items of the same number cannot be told apart from outside."""
    shown = []
    for item in (-SENTINEL, SENTINEL):
        estimator = kind.make()
        kind.feed(estimator, np.full(100, item))
        if kind.takes_single_items:
            estimator.update(item)
        names = [name for name in dir(estimator) if not name.startswith("_")]
        if not kind.private:
            names = [name for name in names if not name.startswith("estimate")]
        values = {name: getattr(estimator, name) for name in names if not callable(getattr(estimator, name))}
        values = {name: plain(value) for name, value in values.items()}
        shown.append(repr((repr(estimator), str(estimator), f"{estimator}", sorted(names), values)))
    assert shown[0] == shown[1]
    assert "4242" not in shown[0]


def plain(value: Any) -> Any:
    """What can be compared of a public attribute; of an internal object its type."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return type(value) if getattr(type(value), "__repr__", None) is object.__repr__ else value


def no_copy_is_made(kind: Kind, copier: Callable[[Any], Any]) -> None:
    """A copy could release the same items again."""
    for estimator in (kind.make(), kind.fed(np.arange(300.0))):
        with pytest.raises(dpf.PrivacyError, match="copied"):
            copier(estimator)


COPIERS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy within a list": lambda estimator: copy.deepcopy([estimator]),
    **{f"pickle {n}": partial(pickle.dumps, protocol=n) for n in range(pickle.HIGHEST_PROTOCOL + 1)},
}


def no_call_from_within(kind: Kind, name: str) -> None:
    """A batch that calls back would see half of itself, or wait for itself for ever."""
    estimator, begun = kind.make(), kind.fed([1.0] * 20)
    before = kind.raw(begun)
    calls: dict[str, Callable[[Any], Any]] = {
        "release": lambda e: e.release(),
        "update_many": lambda e: kind.feed(e, [1.0]),
        "update": lambda e: e.update(1.0),
        "save": lambda e: e.save("/nonexistent/folder/state"),
    }
    for used in (estimator, begun):

        def calling(used: Any = used) -> Iterator[float]:
            yield 1.0
            calls[name](used)

        with pytest.raises(dpf.PrivacyError, match="from within"):
            kind.feed(used, calling(), count=1)
    assert estimator.items == 0
    assert kind.raw(begun) == before
    kind.feed(begun, [2.0])
    kind.release(begun)
    assert begun.items == 21


def threads_take_turns(kind: Kind) -> None:
    """Items that are all alike, from several threads at once, end where they end from one."""
    together, alone, batch = kind.make(), kind.make(), np.full(700, 30.0)

    def work(estimator: Any) -> None:
        for _ in range(10):
            kind.feed(estimator, batch)
            if kind.takes_single_items:
                for _ in range(300):
                    estimator.update(30.0)

    in_threads([lambda: work(together)] * 4)
    for _ in range(4):
        work(alone)
    assert kind.raw(together) == kind.raw(alone)


def threads_may_release(kind: Kind) -> None:
    """No item is lost and no call fails where other threads release."""
    estimator, batch = kind.fed([0.0]), np.random.default_rng(0).normal(0, 5, 7_000)

    def work() -> None:
        for _ in range(15):
            kind.feed(estimator, batch)
            if kind.takes_single_items:
                estimator.update(1.0)
            kind.release(estimator)

    in_threads([work] * 4)
    assert estimator.items == 1 + 4 * 15 * (7_000 + kind.takes_single_items)


def in_threads(works: list[Callable[[], None]]) -> None:
    """Do all of it at once; what fails in a thread fails here."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as failure:
            failures.append(failure)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failures, failures


# In the child: neither a release, nor an item, nor a checkpoint. In the parent everything goes on.
FORK = """\
import ctypes, os, sys
import dpfrugal as dpf
from {module} import {kinds} as KINDS
kind = KINDS[{name!r}]
estimator = kind.fed([1.0] * 50)
uses = [lambda: kind.release(estimator), lambda: kind.feed(estimator, [1.0]), lambda: estimator.save({path!r})]
if kind.takes_single_items and "C" not in {fork_name!r}:  # it looks for hooks only; what it takes in is never released
    uses.append(lambda: estimator.update(1.0))
child = {fork}
if child:
    kind.release(estimator)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
status = 1
try:
    for use in uses:
        try:
            use()
        except dpf.PrivacyError as refusal:
            assert "after a fork" in str(refusal)
            continue
        break
    else:
        status = 0
finally:
    os._exit(status)
"""
FORKS = {"from Python": "os.fork()", "from C, without hooks": "ctypes.PyDLL(None).fork()"}


def no_use_after_a_fork(
    name: str, fork: str, path: Path, module: str = "tests.laws.kinds", kinds: str = "KINDS"
) -> None:
    """Parent and child could release the same items, each with noise of its own."""
    program = FORK.format(module=module, kinds=kinds, name=name, fork_name=fork, fork=FORKS[fork], path=str(path))
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert not path.exists()


def seeds_fix_the_coins(kind: Kind) -> None:
    """The same seed gives the same walk; another seed, or none, another one."""
    stream = np.random.default_rng(0).normal(0, 50, 3_000)
    prefixes = [stream[:end] for end in range(300, 3_001, 300)]
    paths = [
        tuple(tuple(kind.points(kind.fed(prefix, coin_seed=seed))) for prefix in prefixes)
        for seed in (1, 1, 2, None, None)
    ]
    assert paths[0] == paths[1]
    # One end of two walks is the same by chance once in twenty times at most, ten of them once in 10^13.
    assert len(set(paths)) == 4


def seeds_fix_no_noise(kind: Kind) -> None:
    """Two estimators of the same seed, fed the same items, release other values: the same by chance once in 10^12."""
    faint = dpf.PureDP(epsilon=1e-6)
    releases = []
    for _ in range(2):
        estimator = kind.make(guarantee=faint)
        kind.feed(estimator, np.arange(700.0))
        releases.append(kind.seen(estimator))
    assert releases[0] != releases[1]


def nothing_is_released_twice(kind: Kind) -> None:
    """What a release hid is forgotten: given its output, neither the state nor any later noise hides it again."""
    for size in (50, 3_000):
        _later_noise_hides_later_items_only(kind, size)


def _later_noise_hides_later_items_only(kind: Kind, size: int) -> None:
    later = np.random.default_rng(2).normal(0, 9, 3_000)
    runs = []
    for mean in (-50, 50):
        items = np.random.default_rng(3).normal(mean, 20, size)
        with pytest.MonkeyPatch.context() as patch:
            tape = Fixed(kind.lowest_output)
            replace_noise(patch, tape)
            estimator = kind.fed(items)
            kind.release(estimator)
            after, asked = kind.raw(estimator), len(tape.hidden)
            kind.feed(estimator, later)
            kind.release(estimator)
            runs.append((after, tape.hidden[asked:], kind.seen(estimator), asked))
    assert runs[0] == runs[1]
    assert runs[0][3] > 0
    assert runs[0][1], "the later items were never released"


def release_is_repeated(kind: Kind) -> None:
    """Asked again before a new item has come, it answers with the same release and draws no noise."""
    with pytest.MonkeyPatch.context() as patch:
        tape = Seeded(5)
        replace_noise(patch, tape)
        estimator = kind.fed(np.arange(1_000.0))
        first, drawn = kind.release(estimator), tape.drawn
        assert drawn > 0
        assert kind.release(estimator) is first
        assert estimator.release() is first
        seen = kind.seen(estimator)
        kind.feed(estimator, [])
        assert kind.seen(estimator) == seen
        assert tape.drawn == drawn
        kind.feed(estimator, [7.0])
        second = kind.release(estimator)
        assert second is not first
        assert tape.drawn > drawn
        assert estimator.items == 1_001


def checkpoint_goes_on_exactly(
    kind: Kind, stream: NDArray[Any], cut: int, waiting: int, path: Path, **options: Any
) -> None:
    """Restored, it has the same raw state, and shows the same after all that comes later."""
    seen = []
    for restore in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            replace_noise(patch, Seeded(cut))
            replace_bits_of_choices(patch, cut)
            estimator = kind.fed(stream[: cut // 2], **options)
            said = [kind.seen(estimator)] if cut % 2 and estimator.items else []
            kind.feed(estimator, stream[cut // 2 : cut], cut // 2)
            if kind.takes_single_items:
                for item in stream[cut : cut + waiting].tolist():
                    estimator.update(item)
            else:
                kind.feed(estimator, stream[cut : cut + waiting], cut)
            if restore:
                estimator.save(path)
                original, estimator = estimator, kind.load(path)
                assert type(estimator) is type(original)
                assert kind.raw(estimator, settle=False) == kind.raw(original, settle=False)
            for first in range(cut + waiting, stream.size, 4_000):
                kind.feed(estimator, stream[first : first + 4_000], first)
                said.append(kind.seen(estimator))
            seen.append((said, kind.raw(estimator)))
    assert seen[0] == seen[1]


def release_is_restored(kind: Kind, path: Path) -> None:
    """A release that was saved is shown again, without noise, by whoever restores it."""
    estimator = kind.fed(np.arange(1_000.0))
    kind.release(estimator)
    before = kind.seen(estimator)
    estimator.save(path)
    with pytest.MonkeyPatch.context() as patch:
        tape = Seeded(1)
        replace_noise(patch, tape)
        assert kind.seen(kind.load(path)) == before
        assert tape.drawn == 0


def one_of_all_copies_goes_on(kind: Kind, folder: Path) -> None:
    """Of all who hold the same items under one ledger, the first to take noise goes on; the others are stale."""
    ledger = dpf.Ledger(folder / "budget.db", total=dpf.ApproxDP(epsilon=9.0, delta=1e-4))
    original = kind.fed(np.arange(1_000.0), ledger=ledger, dataset="clicks")
    kind.release(original)
    kind.feed(original, np.arange(100.0))  # too few for a segment of their own
    original.save(folder / "state")
    first, second = (kind.load(folder / "state", ledger=ledger) for _ in range(2))
    kind.release(first)
    assert first.items == 1_100
    for stale in (original, second):
        with pytest.raises(dpf.ReplayError, match="stale"):
            kind.release(stale)
    with pytest.raises(dpf.ReplayError, match="stale"):
        kind.load(folder / "state", ledger=ledger)
    kind.feed(first, np.arange(100.0))
    kind.release(first)
    assert first.items == 1_200
    assert len(ledger.dataset("clicks").spends) == 1


def stale_checkpoint_forgets_its_items(kind: Kind, folder: Path) -> None:
    """Where a stale checkpoint may go on, it does so as if the items that it held had never come."""
    states = []
    for held in (-SENTINEL, SENTINEL):
        with pytest.MonkeyPatch.context() as patch:
            replace_noise(patch, Fixed(kind.lowest_output))
            ledger = dpf.Ledger(folder / f"{held}.db", total=dpf.ApproxDP(epsilon=9.0, delta=1e-4))
            original = kind.fed(np.arange(1_000.0), ledger=ledger, dataset="clicks")
            kind.release(original)
            seen = kind.seen(original)
            kind.feed(original, np.full(50, held))
            if kind.takes_single_items:
                original.update(held)
            original.save(folder / f"{held}.private")
            kind.release(original)
            again = kind.load(folder / f"{held}.private", ledger=ledger, forget_if_stale=True)
            assert again.items == 1_000
            assert kind.seen(again) == seen  # public before, and no noise is needed for it
            states.append(kind.raw(again))
            kind.feed(again, np.arange(300.0))
            kind.release(again)
            assert again.items == 1_300
            kind.feed(original, np.arange(100.0))
            with pytest.raises(dpf.ReplayError, match="stale"):
                kind.release(original)
    assert states[0] == states[1]


def replay_risk_is_accepted_aloud(kind: Kind, folder: Path) -> None:
    """Without the ledger that it is charged to, nothing proves a checkpoint fresh."""
    ledger = dpf.Ledger(folder / "budget.db", total=dpf.ApproxDP(epsilon=9.0, delta=1e-4))
    several: list[dict[str, Any]] = [{}, {"ledger": ledger, "dataset": "clicks"}]
    for options in several:
        kind.make(**options).save(folder / "state")
        with pytest.raises(dpf.ReplayError, match="accept_replay_risk=True"):
            kind.cls.load(folder / "state")
        assert kind.load(folder / "state").items == 0


def memory_is_bounded(kind: Kind, path: Path) -> None:
    """A checkpoint, which is all state, stays as small as it was, however many items come, and in whichever way."""
    rng, estimator = np.random.default_rng(1), kind.make()
    for count in (100, 3_000, 100_000, 300_000):
        kind.feed(estimator, rng.standard_cauchy(count))
        estimator.save(path)
        assert path.stat().st_size <= kind.most_bytes, (count, path.stat().st_size)
        if kind.private:
            kind.release(estimator)
    sizes = []
    for _ in range(3):
        for item in rng.standard_cauchy(2_500).tolist():
            if kind.takes_single_items:
                estimator.update(item)
            else:
                kind.feed(estimator, [item])
        estimator.save(path)
        sizes.append(path.stat().st_size)
    assert max(sizes) <= kind.most_bytes + 1024 * 24, "single items may wait, but not more than 1,024 of them"
