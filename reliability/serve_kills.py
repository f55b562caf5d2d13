"""SIGKILL of the server at random points: no window is released twice, none with another's items, no overspend.

    python -m reliability.serve_kills --kills 200

A real ``dpfrugal serve`` with windows of a second is killed, and started again on the same store and ledger, while a
client sends. Items say when they were sent: each second has a value of its own, which all of its items have, and which
the release of another second must not show. After every kill the parent checks, in the files and over HTTP,
- no double release: each window is in the store once, and a release that was seen never changes;
- no other items: a value that was released is that of the window's own second;
- no overspend: the ledger opens, its totals cover what is spent, and that is at least what was released;
- no lost release: what a client was shown is still shown;
- a gap: windows that ended while nothing ran, or that were killed, are not in the store's releases.
"""

import argparse
import http.client
import json
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, TextIO

import dpfrugal as dpf
from dpfrugal.serve import program
from dpfrugal.serve.settings_reading import read_settings

EPSILON = 8.0
SETTINGS = """\
listen: 127.0.0.1:0
operator: 127.0.0.1:0
ledger: budget.db
reserve: 3s
metrics:
  - name: second
    unit: none
    from: {json: value}
    quantiles: [0.5]
    low: 0
    high: 1000000
    window: 1s
    guarantee: {epsilon: 8}
    total_per_day: {epsilon: 691200}
"""
ITEMS = 400  # in a batch


class Sender(threading.Thread):
    """Sends items whose value says in which second they were sent, to whichever server runs."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.port = 0
        self.stopped = False

    def run(self) -> None:
        """Until it is stopped; what a killed server has not taken is not sent again."""
        while not self.stopped:
            now = time.time()
            if self.port and 0.1 < now % 1 < 0.8:
                body = b"\n".join([b'{"value": %d}' % (int(now) % 100_000)] * ITEMS)
                try:
                    connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=0.1)
                    connection.request("POST", "/v1/items", body, {"Content-Type": "application/x-ndjson"})
                    connection.getresponse().read()
                    connection.close()
                except OSError:
                    pass
                except http.client.HTTPException:
                    pass
            time.sleep(0.03)


def serving(folder: Path) -> tuple[int, TextIO]:
    """A forked server in a folder, and what it says: what it imports is there already, so most of its time is work."""
    reading, writing = os.pipe()
    if pid := os.fork():
        os.close(writing)
        return pid, open(reading, encoding="utf-8")
    try:
        os.dup2(writing, 2)
        os.chdir(folder)
        program.run(read_settings(Path("serve.yaml")), Path("serve.yaml"))
    finally:
        os._exit(1)


class Kills:
    """A folder with a store and a ledger, and the servers that are killed on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "serve.yaml").write_text(SETTINGS, encoding="utf-8")
        self.seen: dict[str, Any] = {}  # by the window's end: what a client was shown
        self.released = 0
        self.shown = 0

    def once(self, sender: Sender, draw: random.Random) -> None:
        """Start a server, let it work for a while, kill it at a random point, and check."""
        pid, said = serving(self.folder)
        try:
            port, lines = 0, list[str]()
            for line in said:
                lines.append(line)
                if "listening at" in line:
                    port = int(line.partition("127.0.0.1:")[2].partition(";")[0])
                    break
            assert port, f"the server does not start on what a kill left: {''.join(lines)}"
            sender.port = port
            # Most of what can go wrong happens in the tenth of a second after the end of a window.
            ends = int(time.time()) + draw.choice((1, 2, 2, 3))
            until = ends + draw.choice((draw.random() * 0.15, draw.random() * 0.03, -draw.random() * 0.5))
            while time.time() < until - 0.1:
                self._look(port)
                time.sleep(0.05)
            time.sleep(max(0.0, until - time.time()))
        finally:
            sender.port = 0
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            said.close()
        self.check()

    def _look(self, port: int) -> None:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=0.5)
            connection.request("GET", f"/api/v1/releases?since={time.time() - 20:.0f}")
            found = json.loads(connection.getresponse().read())["releases"]
            connection.close()
        except (OSError, http.client.HTTPException, ValueError, KeyError):
            return
        for release in found:
            self._note(release["window_end"], release["keys"][0])
            self.shown += 1

    def _note(self, ends: str, values: Any) -> None:
        assert self.seen.setdefault(ends, values) == values, "a window was released twice"

    def check(self) -> None:
        """Everything that must hold after a kill."""
        from dpfrugal.serve.exposition import as_json
        from dpfrugal.serve.store import Store

        store = Store(self.folder / "releases.db")
        try:
            releases = store.releases(limit=1_000_000).releases
        finally:
            store.close()
        ends = [release.ends for release in releases]
        assert len(set(ends)) == len(ends), "a window is there twice"
        assert ends == sorted(ends), "windows are out of order"
        found = {}
        for release in releases:
            shown = as_json(release)
            found[shown["window_end"]] = shown["keys"][0]
            value = shown["keys"][0]["values"][0]
            if value is not None and shown["keys"][0]["lower"][0] is not None:
                low, high = shown["keys"][0]["lower"][0], shown["keys"][0]["upper"][0]
                own = (release.ends - 1) % 100_000
                assert high - low > 100 or low - 1 <= own <= high + 1, "a window was released with another's items"
        for when, values in self.seen.items():
            assert found.get(when) == values, "a release that was shown is lost, or is another one"
        self.released = len(releases)
        ledger = dpf.Ledger(self.folder / "budget.db")
        for dataset in ledger.datasets():
            assert dataset.used <= dataset.total.size, "the ledger is overspent"
        assert sum(dataset.used for dataset in ledger.datasets()) >= EPSILON * len(releases), (
            "a release is not paid for"
        )


def kills(count: int, seed: int) -> Kills:
    """So many kills on one folder."""
    folder = Path(tempfile.mkdtemp(prefix="dpfrugal-serve-kills-"))
    draw, sender = random.Random(seed), Sender()  # noqa: S311 - points in time, not secrets
    sender.start()
    work = Kills(folder)
    try:
        for number in range(1, count + 1):
            work.once(sender, draw)
            if number % 20 == 0:
                print(f"{number} kills, {work.released} windows released, {work.shown} looks at releases", flush=True)
    finally:
        sender.stopped = True
        sender.join()
        shutil.rmtree(folder)
    return work


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began = time.perf_counter()
    work = kills(asked.kills, asked.seed)
    print(f"{asked.kills} kills in {time.perf_counter() - began:.0f} s; {work.released} windows released")
    print("none twice, none with another's items, none lost, no overspend")


if __name__ == "__main__":
    main()
