"""The memory and disk that a run needs and finds."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpfrugal.errors import ParameterError
from dpfrugal.paper import resources


def test_resources__foresee_too_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "free_memory_mib", lambda: 500)
    resources.check_resources(tmp_path, jobs=2, rows=1000, items=1000)
    with pytest.raises(ParameterError, match=r"MiB of memory are needed with --jobs 8, and 500 MiB are free"):
        resources.check_resources(tmp_path, jobs=8, rows=1000, items=1000)
    with pytest.raises(ParameterError, match=r"MiB of memory are needed with --jobs 2"):
        resources.check_resources(tmp_path, jobs=2, rows=1000, items=100_000_000)
    monkeypatch.setattr(resources, "free_memory_mib", lambda: None)
    resources.check_resources(tmp_path, jobs=200, rows=1000, items=1000)


def test_resources__foresee_too_little_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "free_memory_mib", lambda: None)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=20 << 20))
    resources.check_resources(tmp_path, jobs=1, rows=1000, items=1000)
    with pytest.raises(ParameterError, match=r"MiB of disk are needed, and 20 MiB are free"):
        resources.check_resources(tmp_path, jobs=1, rows=100_000, items=1000)


def test_resources__have_as_much_free_memory_as_the_least_that_is_granted(tmp_path: Path) -> None:
    meminfo, group = tmp_path / "meminfo", tmp_path / "group"
    assert resources.free_memory_mib(meminfo, group) is None
    meminfo.write_text("MemTotal: 8192000 kB\nMemAvailable: 4096000 kB\n", encoding="utf-8")
    assert resources.free_memory_mib(meminfo, group) == 4000
    group.mkdir()
    (group / "memory.current").write_text(str(1 << 30), encoding="utf-8")
    (group / "memory.max").write_text("max\n", encoding="utf-8")
    assert resources.free_memory_mib(meminfo, group) == 4000
    (group / "memory.max").write_text(f"{3 << 30}\n", encoding="utf-8")
    assert resources.free_memory_mib(meminfo, group) == 2048


def test_resources__name_the_machine_without_the_host() -> None:
    assert "cores" in resources.machine()
    assert os.uname().nodename not in resources.machine()
    assert 10 < resources.peak_memory_mib() < 100_000
