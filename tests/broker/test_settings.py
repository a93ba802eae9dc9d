"""Settings: what a file says, and where it is wrong."""

import re
from pathlib import Path

import pytest

from cases import each
from tamis.broker.accounts import new_token, token_hash
from tamis.broker.grant_checks import unread
from tamis.broker.quantities import read_bytes, read_seconds
from tamis.broker.records import Retention
from tamis.broker.settings import Address, Settings
from tamis.broker.settings_file import read_settings, settings_of
from tamis.errors import FileError, OptionError, SettingsError

TOKEN = token_hash(new_token())
ACCOUNT = f'[accounts.desk]\ntokens = ["{TOKEN}"]\n'
WHOLE = f"""
data = "data"
http = "0.0.0.0:8420"
stomp = "[::1]:0"
durability = "written"
insecure = true

[log]
level = "debug"
format = "text"

[limits]
connections = 5
event_bytes = "1 MB"

[retention]
age = "7 days"

[topics.quotes]
schema = {{ symbol = "string", price = "double", "address.city" = "string" }}
semantics = "strict"
retention = {{ bytes = "2 GiB", events = 1000000 }}

[topics.logs]
retention = {{ age = "1 h" }}

[accounts.desk]
tokens = ["{TOKEN}"]
topics = ["desk.*"]
wider = "refuse"
limits = {{ events_per_second = 100, subscriptions = 7 }}
[accounts.desk.publish]
quotes = "symbol = 'IBM'"
[accounts.desk.subscribe]
quotes = "price < 10"
"desk.*" = true

[accounts.boss]
password = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHRzYWx0$rOoivuLVyPgmbLRq8D6fmMgNVCfGgnLHN0yJvAIAkdE"
admin = true
"""


def test_the_settings_of_the_documentation_can_be_used(put):
    page = (Path(__file__).parents[2] / "docs" / "broker.md").read_text(encoding="utf-8")
    put("server.pem", "")
    put("server.key", "")
    blocks = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    grants, whole = (read_settings(put("tamis.toml", block)) for block in blocks)
    assert grants.accounts[0].subscribe.find("quotes") == "price < 1000"
    assert whole.retention == Retention(7 * 86400.0, 10 * 10**9, 100_000_000)
    assert {"http", "stomp", "tls", "limits", "topics"} <= {
        name for name, value in vars(whole).items() if value != getattr(Settings(), name)
    }


def test_the_usual_settings():
    usual = Settings()
    assert str(usual.http), str(usual.stomp) == ("127.0.0.1:8420", "127.0.0.1:61613")
    usual.check_exposure()
    assert [one.name for one in usual.new_accounts()] == ["guest"]
    assert settings_of("", Path("tamis.toml")) == usual


def test_everything_that_can_be_said(put):
    settings = read_settings(put("tamis.toml", WHOLE))
    assert settings.data.is_absolute()
    assert settings.data.name == "data"
    assert settings.http == Address("0.0.0.0", 8420)  # noqa: S104 - nobody listens there
    assert settings.stomp == Address("::1", 0)
    assert (settings.durability, settings.insecure) == ("written", True)
    assert (settings.log_level, settings.log_format) == ("debug", "text")
    assert settings.topics["quotes"].schema == {
        "symbol": "string", "price": "double", "address.city": "string",
    }  # fmt: skip
    assert settings.retention_of("quotes") == Retention(max_bytes=2 * 2**30, max_events=10**6)
    assert settings.retention_of("logs") == Retention(max_age=3600.0)
    assert settings.retention_of("other") == Retention(max_age=7 * 86400.0)
    desk, boss = settings.accounts
    assert desk.tokens == {TOKEN}
    assert desk.publish.filters == {"quotes": "symbol = 'IBM'"}
    assert desk.subscribe.filters == {"quotes": "price < 10", "desk.*": "TRUE"}
    assert (desk.wider, desk.metrics, desk.topics.find("desk.x")) == ("refuse", False, "TRUE")
    assert (desk.limits.connections, desk.limits.subscriptions) == (5, 7)
    assert (desk.limits.event_bytes, desk.limits.events_per_second) == (1_000_000, 100)
    assert boss.password.startswith("$argon2id$")
    assert boss.metrics
    assert boss.publish.find("anything") == boss.topics.find("anything") == "TRUE"


@each(
    "text, place, message",
    [
        ("a = [1,\n b", (2, 2), "Invalid value"),
        ("a = 1\na = 2", (2, 6), "Cannot overwrite a value"),
        ("a =", (1, 4), "Invalid value"),
        ("dat = 1", (1, 1), "unknown setting 'dat'; did you mean 'data'?"),
        ("data = 1", (1, 8), "expected text in quotes, got 1"),
        ('http = "8420"', (1, 8), "expected an address HOST:PORT"),
        ('http = "::1:8420"', (1, 8), "such as 127.0.0.1:8420 or [::1]:8420"),
        ('stomp = "h:70000"', (1, 9), "not a number from 0 to 65535"),
        ('durability = "maybe"', (1, 14), "expected one of sync, written, got 'maybe'"),
        ("log = 3", (1, 7), "log is a table, not 3"),
        ('[log]\nlevel = "loud"', (2, 9), "expected one of debug, info, warning, error"),
        ("[limits]\nconnections = -1", (2, 15), "a whole number from 1, got -1"),
        ("[limits]\nbody_bytes = true", (2, 14), "'64 MB'"),
        ("[limits]\nevents_per_second = 'x'", (2, 21), "a number above 0"),
        ("[retention]\nage = 'x'", (2, 7), "'7 days'"),
        ("[retention]\nevents = 0", (2, 10), "a whole number from 1"),
        ("[topics.a]\nschema = 'x'", (2, 10), "a schema is a table"),
        ("[topics.a]\nschema = {x = 'text'}", (2, 10), "did you mean 'string'?"),
        ("[topics.a]\nsemantics = 'sql'", (2, 13), "belongs to a schema"),
        ("[topics.a]\nschema = {x = 'int'}\nsemantics = 'null'", (3, 13), "expected one of sql"),
        ("[topics.a]\nschema = {x = 'int'}\nsemantics = 'default'", (1, 1), "needs defaults"),
        ("[accounts.a]", (1, 1), "neither tokens nor a password"),
        ("[accounts.a.publish]\nt = true", (1, 1), "neither tokens nor a password"),
        ("[accounts.a]\ntokens = ['x']", (2, 11), "sha256: and 64 digits"),
        ("[accounts.a]\ntokens = [1]", (2, 11), "expected text in quotes"),
        ("[accounts.a]\npassword = 'x'", (2, 12), "argon2 hash"),
        (ACCOUNT + "wider = 'ignore'", (3, 9), "expected one of narrow, refuse"),
        (ACCOUNT + "topics = ['a*b']", (3, 10), "a star stands at the end"),
        (ACCOUNT + "publish = 3", (3, 11), "publish is a table"),
        (ACCOUNT + "[accounts.desk.publish]\nq = 1", (4, 5), "expected text"),
        (ACCOUNT + "[accounts.desk.publish]\n'a*b' = true", (4, 9), "a star stands"),
        (ACCOUNT + "[accounts.desk.publish]\na.b = true", (4, 1), "a name with dots is put in"),
        (
            ACCOUNT + "[topics.q]\nschema = {price = 'int'}\n[accounts.desk.publish]\n"
            "'*' = 'price > 1 AND prise < 3'",
            (6, 22),
            "did you mean 'price'?",
        ),
        (
            ACCOUNT + "[topics.q]\nschema = {price = 'int'}\n[accounts.desk.publish]\n"
            'q = "prise \\u003c 3"',
            (6, 5),
            "unknown attribute 'prise'",
        ),
        (ACCOUNT + "[accounts.desk.publish]\nnews = 'size <'", (4, 15), "ends too early"),
        (ACCOUNT + "[accounts.desk.publish]\nnews = '(a.b = 1'", (4, 17), "expected )"),
        (
            ACCOUNT + "[topics.q]\nschema = {at = 'timestamp'}\n[accounts.desk.publish]\n"
            "q = 'at < now()'",
            (6, 11),
            "filters cannot use the clock here: now",
        ),
        (ACCOUNT + f"[accounts.other]\ntokens = ['{TOKEN}']", (1, 1), "have the same token"),
        ('http = "0.0.0.0:1"', (1, 8), "there are no accounts"),
        ('http = "example.org:1"\n' + ACCOUNT, (1, 8), "there is no TLS"),
        ('[tls]\nkey = "k"', (1, 1), "has no certificate"),
        ('[tls]\ncertificate = "nowhere.pem"\nkey = "k"', (2, 15), "there is no file"),
        ("[tls]\nkeys = 1", (2, 1), "unknown setting 'keys'; did you mean 'key'?"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text, place, message):
    with pytest.raises(SettingsError) as wrong:
        settings_of(text, Path("/nowhere/tamis.toml"))
    problems = {(one.line, one.column): str(one) for one in wrong.value.problems}
    assert place in problems
    assert message in problems[place]
    assert str(wrong.value).startswith("/nowhere/tamis.toml: ")


def test_a_grant_is_read_for_the_topics_that_it_counts_for():
    text = (
        ACCOUNT + "[topics.q]\nschema = {price = 'int'}\n[topics.log]\nretention = {events = 5}\n"
        "[accounts.desk.publish]\n'*' = \"size < 3 AND name = 'x'\"\n"
        "q = 'price < 3'\nlog = 'x = 1'\n"
        "[accounts.desk.subscribe]\n'*' = true\n'q*' = 'price > 1'\n"
    )
    settings = settings_of(text, Path("t.toml"))
    assert unread(settings.accounts, settings.topics) == [
        "accounts.desk.publish.*", "accounts.desk.publish.log",
    ]  # fmt: skip


def test_everything_that_is_wrong_is_said_at_once():
    with pytest.raises(SettingsError) as wrong:
        settings_of("stomp = 1\n[log]\nlevel = 2\nloud = 3\n", Path("t.toml"))
    assert [one.line for one in wrong.value.problems] == [1, 3, 4]


def test_a_file_that_cannot_be_read(tmp_path, put):
    with pytest.raises(FileError, match="cannot be read: No such file"):
        read_settings(tmp_path / "nowhere.toml")
    with pytest.raises(FileError, match="not UTF-8"):
        read_settings(put("tamis.toml", b"a = '\xff'"))


@each(
    "text, size",
    [(7, 7), ("7", 7), ("64 MB", 64_000_000), ("1.5kb", 1500), ("1 GiB", 2**30), ("2b", 2)],
)
def test_sizes(text, size):
    assert read_bytes(text) == size


@each(
    "text, seconds",
    [(7, 7.0), (0.5, 0.5), ("90", 90.0), ("90 s", 90.0), ("1 minute", 60.0), ("12h", 43200.0),
     ("7 days", 604800.0), ("2 weeks", 1209600.0), ("250 ms", 0.25)],
)  # fmt: skip
def test_durations(text, seconds):
    assert read_seconds(text) == seconds


@each("wrong", [0, -1, True, "", "x", "-1 s", "1 parsec", "0", None, "9" * 40])
def test_what_is_neither_a_size_nor_a_duration(wrong):
    for read in (read_bytes, read_seconds):
        with pytest.raises(OptionError, match="expected a"):
            read(wrong)
