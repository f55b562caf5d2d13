"""Settings: what is wrong is refused with the line, the field and what is allowed."""

from pathlib import Path

import pytest

from dpfrugal.errors import ParameterError
from dpfrugal.privacy.guarantees import ZCDP, ApproxDP, PureDP
from dpfrugal.serve.settings import Settings, windows_covered
from dpfrugal.serve.settings_reading import EXAMPLE, read_settings, settings_of_text


def test_settings__the_example_is_accepted() -> None:
    (metric,) = settings_of_text(EXAMPLE).metrics
    assert metric.base_name == "request_duration_seconds"
    assert metric.windows_per_day == 1440
    assert metric.cost_of(60) == PureDP(epsilon=30.0)


WRONG = {
    "window: 1m": ("window: 7m", 14, "window", "whole parts of a day"),
    "epsilon: 0.5": ("epsilon: -1", 15, "guarantee.epsilon", "above 0"),
    "[0.5, 0.9, 0.99]": ("[0.5, 1.5]", 13, "quantiles", "between 0 and 1"),
    "unit: seconds": ("unit: minutes", 9, "unit", "milliseconds"),
    "unit: sec": ("unit: milli", 9, "unit", "must be seconds, "),
    "max_items: 20": ("max_items: 0", 12, "person.max_items", "between 1 and"),
    "epsilon: 720": ("epsilon: 0.1", 16, "total_per_day", "must cover a window"),
    "{epsilon: 720": ("{rho: 720", 16, "total_per_day", "in the same terms"),
    "spans: duration": ("span: duration", 10, "from", "spans, logs, statsd, json"),
    "quantiles:": ("quantile:", 13, "quantile", "the field quantiles is needed"),
    "metrics:": ("metric:", 6, "metric", "the field metrics is needed"),
    "about:": ("abuot:", 8, "abuot", "allowed are name, unit"),
    "declared: [/home,": ("declared: [/pay,", 11, "keys.declared", "none twice"),
    "listen: 127.0.0.1": ("listen: 0.0.0.0", 1, "listen", "tokens.ingest and tokens.read and tls"),
    "statsd: 127.0.0.1": ("statsd: 0.0.0.0", 3, "statsd", "loopback"),
    "operator: 127.0.0.1:4319": ("operator: 127.0.0.1:4318", 2, "operator", "another port"),
    "name: request_duration": ("name: request-duration", 7, "name", "letters, digits"),
    "store: releases.db": ("keep: 3 weeks", 4, "keep", "10s, 5m, 1h or 1d"),
    "ledger:": ("ledger: [", 6, "", "YAML"),
}


@pytest.mark.parametrize("right", WRONG)
def test_settings__a_wrong_field_is_refused_with_its_line_and_what_is_allowed(right: str) -> None:
    wrong, line, field, allowed = WRONG[right]
    assert right in EXAMPLE
    with pytest.raises(ParameterError) as refused:
        settings_of_text(EXAMPLE.replace(right, wrong, 1))
    said = str(refused.value)
    assert f"line {line}:" in said
    assert field in said
    assert allowed in said
    assert "\n" not in said


@pytest.mark.parametrize(
    "text", ["", "3", "- a", "metrics: {}", "metrics: []", "a: &x [*x]", "\t", "metrics: [3]", "[" * 5000]
)
def test_settings__any_text_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ParameterError) as refused:
        settings_of_text(text)
    assert str(refused.value).endswith(".")


def test_settings__a_field_twice_and_a_section_that_is_missing_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"line 2.* names listen twice"):
        settings_of_text("listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\n")
    with pytest.raises(ParameterError, match="needs the field guarantee"):
        settings_of_text(EXAMPLE.replace("    guarantee: {epsilon: 0.5}\n", ""))


def test_settings__doors_to_the_network_need_tokens_and_tls(tmp_path: Path) -> None:
    import trustme

    issued = trustme.CA().issue_cert("localhost")
    issued.private_key_and_cert_chain_pem.write_to_path(tmp_path / "cert")
    for name in ("one", "two"):
        (tmp_path / name).write_text(f"{name}-0123456789abcdef\n", encoding="utf-8")
    open_door = EXAMPLE.replace("listen: 127.0.0.1", "listen: 0.0.0.0")
    tokens = "tokens: {ingest: one, read: two}\n"
    with pytest.raises(ParameterError, match="needs tls"):
        settings_of_text(open_door + tokens, tmp_path)
    found = settings_of_text(open_door + tokens + "tls: {certificate: cert, key: cert}\n", tmp_path)
    assert found.tokens.ingest == ("one-0123456789abcdef",)
    assert "0123456789" not in repr(found)
    with pytest.raises(ParameterError, match="another right"):
        settings_of_text(EXAMPLE + "tokens: {ingest: one, read: one}\n", tmp_path)
    (tmp_path / "one").write_text("short\n", encoding="utf-8")
    with pytest.raises(ParameterError, match="at least 16"):
        settings_of_text(EXAMPLE + "tokens: {ingest: one}\n", tmp_path)


def test_settings__a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="cannot be read"):
        read_settings(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ParameterError, match="UTF-8"):
        read_settings(tmp_path / "bytes.yaml")


def test_windows_covered__is_exact() -> None:
    assert windows_covered(PureDP(epsilon=0.3), PureDP(epsilon=0.1)) == 3
    assert windows_covered(ZCDP(rho=1.0), ZCDP(rho=0.3)) == 3
    assert windows_covered(ApproxDP(epsilon=9, delta=1e-6), ApproxDP(epsilon=1, delta=2e-7)) == 5


def test_settings__defaults_stay_on_the_loopback() -> None:
    found = Settings(())
    assert found.listen.is_loopback
    assert found.operator.is_loopback


def with_files(folder: Path, more: str) -> Settings:
    (folder / "binary").write_bytes(b"\xff" * 100)
    (folder / "text").write_text("no certificate\n", encoding="utf-8")
    (folder / "serve.yaml").write_text(more + EXAMPLE, encoding="utf-8")
    return read_settings(folder / "serve.yaml")


@pytest.mark.parametrize(
    ("more", "field", "allowed"),
    [
        ("tokens: {read: binary}\n", "tokens.read", "text in UTF-8"),
        ("tls: {certificate: text, key: text}\n", "tls.certificate", "in PEM that belongs to key"),
        ("tls: {certificate: binary, key: binary}\n", "tls.certificate", "in PEM that belongs to key"),
    ],
)
def test_settings__a_file_that_cannot_be_used_is_refused(tmp_path: Path, more: str, field: str, allowed: str) -> None:
    with pytest.raises(ParameterError, match=rf"line 1: {field} must be .*{allowed}"):
        with_files(tmp_path, more)


def test_settings__a_private_key_with_a_passphrase_is_refused_and_none_is_asked_for(tmp_path: Path) -> None:
    import trustme
    from cryptography.hazmat.primitives import serialization as form

    issued = trustme.CA().issue_cert("localhost")
    key = form.load_pem_private_key(issued.private_key_pem.bytes(), None)
    locked = form.BestAvailableEncryption(b"secret")
    pem = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, locked)
    (tmp_path / "key.pem").write_bytes(pem)
    issued.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    with pytest.raises(ParameterError, match="no passphrase"):
        with_files(tmp_path, "tls: {certificate: cert.pem, key: key.pem}\n")


def test_settings__a_file_of_keys_has_one_on_each_line(tmp_path: Path) -> None:
    (tmp_path / "keys").write_bytes("/a\r\n\n/ü\n".encode())
    (tmp_path / "serve.yaml").write_text(EXAMPLE.replace("declared: [/home, /search, /pay]", "file: keys"), "utf-8")
    keys = read_settings(tmp_path / "serve.yaml").metrics[0].keys
    assert keys is not None
    assert keys.declared == ("/a", "/ü")
    (tmp_path / "keys").write_bytes(b"\xff")
    with pytest.raises(ParameterError, match=r"line 11: .*keys\.file must be .*UTF-8"):
        read_settings(tmp_path / "serve.yaml")
