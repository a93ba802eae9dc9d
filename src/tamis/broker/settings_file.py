"""Reads settings from a TOML file; what is wrong is said with its place, all of it at once.

docs/broker.md lists the keys.
"""

import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tamis.broker.accounts import WIDER, Account, check_password_hash, check_token_hash
from tamis.broker.grant_checks import check_grant
from tamis.broker.grants import Grants
from tamis.broker.limits import AccountLimits
from tamis.broker.network_settings import NetworkSettings, PeerSettings, read_merging
from tamis.broker.quantities import read_bytes, read_seconds
from tamis.broker.records import Retention
from tamis.broker.settings import (
    DURABILITIES,
    LOG_FORMATS,
    LOG_LEVELS,
    Address,
    Settings,
    TlsFiles,
    TopicSettings,
)
from tamis.broker.settings_table import (
    Problems,
    Table,
    as_count,
    as_list,
    as_mapping,
    as_rate,
    as_text,
    as_texts,
    as_truth,
    kind_of,
    one_of,
)
from tamis.errors import FileError, OptionError, SettingsError, TextError
from tamis.language.expression import MATCHES_ALL
from tamis.routing.strategies import STRATEGIES
from tamis.schema import Schema
from tamis.semantics import NAMES, Semantics


def read_settings(path: Path) -> Settings:
    """The settings of a file; a `SettingsError` has everything that is wrong with it."""
    return settings_of(text_of(path), path)


def text_of(path: Path) -> str:
    """The text of a file of settings."""
    try:
        return path.read_text(encoding="utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise FileError(f"the settings {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise FileError(f"the settings {path} are not UTF-8: {error}") from None


def settings_of(text: str, path: Path) -> Settings:
    """The settings of a text; file names in it are relative to the folder of `path`."""
    content = toml_of(text, path)
    problems = Problems(text)
    settings = _settings(Table(problems, (), content), path.absolute().parent)
    if not problems.found:
        for name, exposure in settings.exposures().items():
            problems.add((name,), exposure)
        problems.attempt((), settings.new_accounts)
    if problems.found:
        problems.found.sort(key=lambda problem: problem.start)
        raise SettingsError(str(path), problems.found)
    return settings


def _settings(top: Table, folder: Path) -> Settings:
    log = top.table("log")
    limits = _limits(top.table("limits"), AccountLimits())
    topics = top.table("topics")
    named = {name: _topic(topics.inner(name, topics.content[name])) for name in topics.content}
    accounts = top.table("accounts")
    usual = Settings()
    given = {
        "data": top.take("data", lambda value: folder / as_text(value), usual.data),
        "http": top.take("http", Address.read, usual.http),
        "stomp": top.take("stomp", Address.read, usual.stomp),
        "durability": top.take("durability", one_of(DURABILITIES), usual.durability),
        "insecure": top.take("insecure", as_truth, usual.insecure),
        "log_level": log.take("level", one_of(LOG_LEVELS), usual.log_level),
        "log_format": log.take("format", one_of(LOG_FORMATS), usual.log_format),
        "tls": _tls(top, folder),
        "network": _network(top, folder),
        "limits": limits,
        "retention": _retention(top.table("retention")) or usual.retention,
        "topics": named,
        "accounts": tuple(
            _account(accounts.inner(name, accounts.content[name]), name, limits, named)
            for name in accounts.content
        ),
    }
    log.finish()
    top.finish()
    return top.problems.attempt((), Settings, **given) or usual


def _tls(top: Table, folder: Path) -> TlsFiles | None:
    tls = top.table("tls")
    if "tls" not in top.content:
        return None

    file = partial(readable_file, folder)
    certificate, key = tls.take("certificate", file, None), tls.take("key", file, None)
    for name in ("certificate", "key"):
        if name not in tls.content:
            tls.problems.add(tls.path, f"[tls] has no {name}: the name of a PEM file")
    tls.finish()
    return None if certificate is None or key is None else TlsFiles(certificate, key)


def _network(top: Table, folder: Path) -> NetworkSettings | None:
    name = top.take("name", as_text, None)
    listen = top.take("listen", Address.read, None)
    peers = top.table("peers")
    table = top.table("network")
    usual = NetworkSettings("broker")
    called = {peer: _peer(peers, peer) for peer in peers.content}
    given: dict[str, Any] = {
        "listen": listen,
        "peers": {peer: one for peer, one in called.items() if one is not None},
        "secret": table.take("secret", as_text, usual.secret),
        "authority": table.take("authority", partial(readable_file, folder), None),
        "beat": table.take("beat", read_seconds, usual.beat),
        "patience": table.take("patience", read_seconds, usual.patience),
        "strategy": table.take("strategy", one_of(STRATEGIES), usual.strategy),
        "merging": read_merging(table.table("merging")),
    }
    table.finish()
    if name is None:
        for key in ("listen", "peers", "network"):
            if key in top.content and "name" not in top.content:
                problem = f"{key} is for a broker in a network, which has a name: name = ..."
                top.problems.add((key,), problem, key=True)
        return None
    return top.problems.attempt(("name",), NetworkSettings, name, **given)


def _peer(peers: Table, name: str) -> PeerSettings | None:
    """``b2 = "HOST:PORT"``, or a table with an address and a secret."""
    value = peers.content[name]
    if isinstance(value, str):
        address = peers.problems.attempt((*peers.path, name), Address.read, value)
        return None if address is None else PeerSettings(address)
    table = peers.inner(name, value)
    found = table.take("address", Address.read, None)
    secret = table.take("secret", as_text, None)
    table.finish()
    if found is None:
        if isinstance(value, Mapping) and "address" not in value:
            peers.problems.add(table.path, f"peer {name!r} has no address: HOST:PORT", key=True)
        return None
    return PeerSettings(found, secret)


def readable_file(folder: Path, value: object) -> Path:
    """The path of a file that is there, relative to a folder."""
    path = folder / as_text(value)
    if not path.is_file():
        raise FileError(f"there is no file {path}")
    return path


def _limits(table: Table, usual: AccountLimits) -> AccountLimits:
    given = {
        "connections": table.take("connections", as_count, usual.connections),
        "subscriptions": table.take("subscriptions", as_count, usual.subscriptions),
        "event_bytes": table.take("event_bytes", read_bytes, usual.event_bytes),
        "body_bytes": table.take("body_bytes", read_bytes, usual.body_bytes),
        "events_per_second": table.take("events_per_second", as_rate, usual.events_per_second),
    }
    table.finish()
    return table.problems.attempt(table.path, AccountLimits, **given) or usual


def _retention(table: Table) -> Retention | None:
    age: float | None = table.take("age", read_seconds, None)
    size: int | None = table.take("bytes", read_bytes, None)
    events: int | None = table.take("events", as_count, None)
    table.finish()
    return Retention(age, size, events) if table.content else None


def _topic(table: Table) -> TopicSettings:
    problems = table.problems
    schema = table.take("schema", _schema, None)
    semantics = table.take("semantics", one_of(NAMES), "sql")
    defaults = table.take("defaults", as_mapping, None)
    retention = _retention(table.table("retention"))
    table.finish()
    if schema is None:
        for key in ("semantics", "defaults"):
            if key in table.content and "schema" not in table.content:
                problems.add((*table.path, key), f"{key} belongs to a schema, and there is none")
    else:
        problems.attempt(table.path, Semantics, semantics, schema, defaults)
    types = None if schema is None else {a.name: str(a) for a in schema.attributes}
    return TopicSettings(types, semantics, defaults, retention)


def _account(
    table: Table, name: str, limits: AccountLimits, topics: Mapping[str, TopicSettings]
) -> Account:
    tokens: list[Any] = table.take("tokens", as_list, [])
    hashes = [
        table.problems.attempt((*table.path, "tokens", number), check_token_hash, as_text(token))
        for number, token in enumerate(tokens)
        if table.problems.attempt((*table.path, "tokens", number), as_text, token) is not None
    ]
    admin = table.take("admin", as_truth, False)
    topics_managed: list[str] = table.take("topics", as_texts, [])
    patterns = dict.fromkeys(topics_managed, MATCHES_ALL)
    every = {"*": MATCHES_ALL} if admin else {}
    given = {
        "tokens": frozenset(one for one in hashes if one is not None),
        "password": table.take("password", lambda v: check_password_hash(as_text(v)), None),
        "publish": _grants(table.table("publish"), topics, every),
        "subscribe": _grants(table.table("subscribe"), topics, every),
        "topics": table.problems.attempt((*table.path, "topics"), Grants, patterns | every),
        "metrics": table.take("metrics", as_truth, admin),
        "quench": table.take("quench", as_truth, admin),
        "wider": table.take("wider", one_of(WIDER), "narrow"),
        "limits": _limits(table.table("limits"), limits),
    }
    table.finish()
    if not name:
        table.problems.add(table.path, "an account has a name", key=True)
    if "tokens" not in table.content and "password" not in table.content:
        problem = f"account {name!r} has neither tokens nor a password: nobody could use it"
        hint = f"tamis account {name} makes a token"
        table.problems.add(table.path, problem, hint, key=True)
    made = table.problems.attempt(table.path, Account, name, **given)
    return Account(name) if made is None else made


def _grants(table: Table, topics: Mapping[str, TopicSettings], every: Mapping[str, str]) -> Grants:
    """The filters of ``[accounts.NAME.publish]``: for each topic a filter, or true."""
    filters = dict(every)
    for topic, given in table.content.items():
        path = (*table.path, topic)
        if isinstance(given, Mapping):
            problem = "expected a filter, or true; a name with dots is put in quotes"
            table.problems.add(path, problem, key=True)
            continue
        text = MATCHES_ALL if given is True else table.problems.attempt(path, as_text, given)
        grant = None if text is None else table.problems.attempt(path, Grants, {topic: text})
        if text is None or grant is None:
            continue
        filters[topic] = text
    grants = Grants(filters)
    for topic in filters.keys() & table.content.keys():
        table.problems.attempt((*table.path, topic), check_grant, grants, topic, topics)
    return grants


def _schema(value: object) -> Schema:
    if not isinstance(value, Mapping):
        raise OptionError(f'a schema is a table {{ price = "double", ... }}, not {kind_of(value)}')
    return Schema(_flat(value))


def _flat(value: Mapping[str, Any]) -> dict[str, Any]:
    """``{a = {b = "int"}}``, which TOML makes of ``a.b = "int"``, as ``{"a.b": "int"}``."""
    flat: dict[str, Any] = {}
    for name, kind in value.items():
        if isinstance(kind, Mapping):
            flat |= {f"{name}.{rest}": inner for rest, inner in _flat(kind).items()}
        else:
            flat[name] = kind
    return flat


def toml_of(text: str, path: Path) -> dict[str, Any]:
    """The content of a TOML file; a `SettingsError` says where it is wrong."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(str(path), [_syntax_error(error, text)]) from None
    except RecursionError:
        problem = TextError("the values are nested too deeply", text, 0, 0)
        raise SettingsError(str(path), [problem]) from None


def _syntax_error(error: tomllib.TOMLDecodeError, text: str) -> TextError:
    """What tomllib says, at its place: it knows the place, and gives it only as text."""
    problem, _, place = str(error).rpartition(" (at ")
    words = place.rstrip(")").replace(",", "").split()
    if len(words) == 4 and words[0] == "line":
        lines = text.split("\n")
        start = sum(len(line) + 1 for line in lines[: int(words[1]) - 1]) + int(words[3]) - 1
    else:
        start = len(text)  # "at end of document"
    return TextError(problem or str(error), text, start, start + 1)
