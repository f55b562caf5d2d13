"""An engine whose package is not installed says which extra brings it."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("engine", "package"), [("duckdb", "duckdb"), ("polars", "polars"), ("river", "river"), ("spark", "pyspark")]
)
def test_missing__engines_name_the_extra(engine: str, package: str) -> None:
    code = f"import sys; sys.modules['{package}'] = None; import dpfrugal.engines.{engine}"
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    last = failed.stderr.decode().strip().splitlines()[-1]
    wanted = f"dpfrugal.engines.{engine} needs the package {package}: pip install 'dpfrugal[{engine}]'."
    assert last == f"ModuleNotFoundError: {wanted}"
