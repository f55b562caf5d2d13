"""The settings from their file: each field is checked where it stands."""

import ssl
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any, Final

from dpfrugal.serve import settings as s
from dpfrugal.serve.metric_reading import metric_of
from dpfrugal.serve.settings_file import Fields, file_of, lines_of, read_file, read_text

SHORTEST_TOKEN: Final = 16
EXAMPLE: Final = """\
listen: 127.0.0.1:4318
operator: 127.0.0.1:4319
statsd: 127.0.0.1:8125
store: releases.db
ledger: budget.db
metrics:
  - name: request_duration
    about: Time to answer a request
    unit: seconds
    from: {spans: duration, where: {span.kind: server}}
    keys: {attribute: http.route, declared: [/home, /search, /pay], other: everything else}
    person: {attribute: enduser.id, max_items: 20}
    quantiles: [0.5, 0.9, 0.99]
    window: 1m
    guarantee: {epsilon: 0.5}
    total_per_day: {epsilon: 720}
"""


def read_settings(path: Path) -> s.Settings:
    """The settings of a file; paths in it are relative to its folder."""
    return _settings(read_file(path), path.parent)


def settings_of_text(text: str, folder: Path = Path(), file: str = "settings") -> s.Settings:
    """The settings of a text."""
    return _settings(read_text(text, file), folder)


def _settings(given: Fields, folder: Path) -> s.Settings:
    listen = _address(given, "listen", "127.0.0.1:4318")
    operator = _address(given, "operator", f"127.0.0.1:{listen.port + 1 if listen.port else 0}")
    statsd = _address(given, "statsd", None)
    tokens = _tokens(given.section("tokens"), folder)
    tls = given.section("tls")
    certificate = private_key = None
    if tls is not None:
        certificate, private_key = (file_of(tls, name, folder) for name in ("certificate", "key"))
        _check_certificate(tls, certificate, private_key)
        tls.end()
    ledger = given.text("ledger", "the path of a ledger", None)
    found = s.Settings(
        metrics=_metrics(given, folder),
        listen=listen,
        operator=operator,
        statsd=statsd,
        store=folder / given.text("store", "the path of a file for releases", "releases.db"),
        keep=given.seconds("keep", 30 * s.DAY),
        ledger=None if ledger is None else folder / ledger,
        reserve=given.seconds("reserve", 3600.0),
        hosts=given.texts("hosts", "the host names that clients use, or a list of them", ()),
        tokens=tokens,
        certificate=certificate,
        private_key=private_key,
        limits=_limits(given.section("limits")),
    )
    _refuse_open_doors(given, found)
    given.end()
    return found


def _refuse_open_doors(given: Fields, found: s.Settings) -> None:
    """Whoever is not on this machine needs a token, and TLS to send it."""
    if found.statsd is not None and not found.statsd.is_loopback:
        given.wrong(
            "statsd", "must be a loopback address: StatsD has neither TLS nor tokens; put a relay beside dpfrugal"
        )
    for name, address, asked in (
        ("listen", found.listen, ("ingest", "read")),
        ("operator", found.operator, ("operator",)),
    ):
        if address.is_loopback:
            continue
        missing = [f"tokens.{which}" for which in asked if getattr(found.tokens, which) is None]
        missing += ["tls"] if found.certificate is None else []
        if missing:
            given.wrong(name, f"must be a loopback address such as 127.0.0.1:4318, or needs {' and '.join(missing)}")
    if found.listen.port and found.listen == found.operator:
        given.wrong("operator", "must be another port than listen: its figures are not public")


def _address(given: Fields, name: str, default: str | None) -> Any:
    allowed = "HOST:PORT such as 127.0.0.1:4318"
    text = given.text(name, allowed, default)
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        given.wrong(name, f"must be {allowed}; {text[:80]!r} is not")
    return s.Address(host.removeprefix("[").removesuffix("]"), int(port))


def _check_certificate(given: Fields, certificate: Path, private_key: Path) -> None:
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, private_key, password="")
    except OSError:  # also what OpenSSL says
        given.wrong("certificate", "must be a certificate in PEM that belongs to key, which has no passphrase")


def _tokens(given: Fields | None, folder: Path) -> s.Tokens:
    if given is None:
        return s.Tokens()
    found: dict[str, tuple[str, ...]] = {}
    for name in ("ingest", "read", "operator"):
        if name not in given:
            continue
        lines = tuple(line.strip() for line in lines_of(given, name, folder))
        if not lines or any(len(line) < SHORTEST_TOKEN or not line.isascii() for line in lines):
            given.wrong(name, f"must be a file with a token per line, each of at least {SHORTEST_TOKEN} ASCII letters")
        if any(set(lines) & set(other) for other in found.values()):
            given.wrong(name, "has a token that another right has too: each needs tokens of its own")
        found[name] = lines
    given.end()
    return s.Tokens(**found)


def _limits(given: Fields | None) -> s.Limits:
    if given is None:
        return s.Limits()
    plain = s.Limits()
    found: dict[str, Any] = {}
    for each in fields_of(s.Limits):
        default = getattr(plain, each.name)
        if each.name in ("body", "decompressed"):
            found[each.name] = given.size(each.name, default)
        elif each.name in ("seconds", "far"):
            found[each.name] = given.seconds(each.name, default)
        else:
            found[each.name] = given.integer(each.name, 1, 100_000, default)
    given.end()
    return s.Limits(**found)


def _metrics(given: Fields, folder: Path) -> tuple[s.Metric, ...]:
    metrics: list[s.Metric] = []
    names: set[str] = set()
    for section in given.sections("metrics"):
        metric = metric_of(section, folder)
        taken = {metric.base_name, f"{metric.base_name}_lower", f"{metric.base_name}_upper"}
        if names & taken:
            section.wrong("name", f"must be another than those before: {metric.base_name} is there")
        names |= taken
        metrics.append(metric)
    return tuple(metrics)
