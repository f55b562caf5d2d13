"""The demonstration: its settings are accepted, and the spans that it sends are items of its metric."""

import random
from pathlib import Path

import pytest

from dpfrugal.serve.demo import ENDPOINTS, SPANS, batch, demo_settings
from dpfrugal.serve.ingest.items import Reader
from dpfrugal.serve.ingest.otlp import read_protobuf
from tests.support.serving import NOON


def test_demo__has_settings_for_its_endpoints(tmp_path: Path) -> None:
    settings = demo_settings(4318, tmp_path)
    (metric,) = settings.metrics
    assert metric.shown_keys == tuple(ENDPOINTS)
    assert metric.windows_per_day * metric.window == 86_400, "windows are released all day"
    assert (str(settings.listen), str(settings.operator)) == ("127.0.0.1:4318", "127.0.0.1:4319")
    assert settings.store.parent == tmp_path
    assert str(demo_settings(0, tmp_path).operator).endswith(":0")


@pytest.mark.parametrize("now", [NOON, NOON + 100])
def test_demo__sends_items_of_every_endpoint(now: float, tmp_path: Path) -> None:
    (metric,) = demo_settings(4318, tmp_path).metrics
    reader = Reader(metric)
    items, refused = read_protobuf("traces", batch(random.Random(1), now), reader.names, now, 60.0)  # noqa: S311 - made-up traffic
    rows = reader.rows(items)
    assert refused == {}
    assert rows is not None
    assert (len(rows.keys), dict(rows.refused)) == (SPANS, {})
    assert set(rows.keys) == set(ENDPOINTS)
    assert ((rows.values > 0) & (rows.values < 30)).all()
    assert rows.identities is not None
    assert len(set(rows.identities.tolist())) == SPANS


def test_demo__makes_payments_slow_for_a_while(tmp_path: Path) -> None:
    """Every two minutes, for forty seconds: what is released shows it."""
    (metric,) = demo_settings(4318, tmp_path).metrics
    reader, means = Reader(metric), []
    for second in (20, 100):
        now = NOON // 120 * 120 + second
        items, _ = read_protobuf("traces", batch(random.Random(1), now), reader.names, now, 60.0)  # noqa: S311 - made-up traffic
        rows = reader.rows(items)
        assert rows is not None
        paid = [value for key, value in zip(rows.keys, rows.values, strict=True) if key == "/pay"]
        means.append(sum(paid) / len(paid))
    assert 2 < means[1] / means[0] < 4
