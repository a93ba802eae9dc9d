"""``tamis serve --check``: what is wrong with settings and where, or the settings."""

import json

import pytest

from cases import each
from tamis.broker.accounts import new_token, token_hash
from tamis.cli import main

ACCOUNT = f'[accounts.desk]\ntokens = ["{token_hash(new_token())}"]\n'


def test_the_usual_settings_are_shown(capsys):
    assert main(["serve", "--check"]) == 0
    shown = capsys.readouterr().out
    assert "http: 127.0.0.1:8420\nstomp: 127.0.0.1:61613\n" in shown
    assert "  guest:\n" in shown


def test_options_count_more_than_the_file(put, capsys):
    config = put("t.toml", 'http = "127.0.0.1:1"\nstomp = "127.0.0.1:2"\n' + ACCOUNT)
    options = ["--http", "[::1]:0", "--data", "elsewhere", "--log-level", "warning"]
    assert main(["serve", "--check", "--json", "--config", str(config), *options]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["http"], shown["stomp"]) == ("[::1]:0", "127.0.0.1:2")
    assert shown["data"].endswith("/elsewhere")
    assert shown["log"]["level"] == "warning"
    assert list(shown["accounts"]) == ["desk"]
    assert "sha256" not in json.dumps(shown)  # no secret, not even hashed


def test_every_problem_of_the_file_has_its_place(put, capsys):
    config = put("t.toml", "http = 1\n[limits]\nconnection = 3\n")
    assert main(["serve", "--check", "--json", "--config", str(config)]) == 1
    output = capsys.readouterr()
    error = json.loads(output.out)["error"]
    assert error["file"] == str(config)
    assert [(p["line"], p["column"]) for p in error["problems"]] == [(1, 8), (3, 1)]
    assert error["problems"][1]["hint"] == "did you mean 'connections'?"
    assert "(line 1, column 8)\n  http = 1\n         ^\n" in output.err


@each(
    "options, message",
    [
        (["--http", "0.0.0.0:8420"], "there are no accounts"),
        (["--stomp", "[::]:1"], "there are no accounts"),
        (["--config", "nowhere.toml"], "nowhere.toml cannot be read"),
    ],
)
def test_what_cannot_be_served_is_refused(options, message, capsys):
    assert main(["serve", *options]) == 1
    assert message in capsys.readouterr().err


def test_an_option_that_opens_a_broker_without_tls_is_refused(put, capsys):
    config = put("t.toml", ACCOUNT)
    assert main(["serve", "--config", str(config), "--http", "192.0.2.1:80"]) == 1
    assert "there is no TLS" in capsys.readouterr().err


def test_options_of_networks(put, capsys):
    config = put(
        "t.toml",
        """
        name = "b1"
        listen = "127.0.0.1:1"
        [network]
        secret = "s"
        beat = "1 s"
        [peers]
        b2 = "127.0.0.1:2"
        """,
    )
    options = ["--config", str(config), "--listen", "127.0.0.1:3", "--peer", "b3=127.0.0.1:4"]
    assert main(["serve", "--check", "--json", *options]) == 0
    assert json.loads(capsys.readouterr().out)["network"] == {
        "name": "b1", "listen": "127.0.0.1:3", "peers": {"b2": "127.0.0.1:2", "b3": "127.0.0.1:4"},
        "secret": "set", "authority": None, "beat": 1.0, "patience": 10.0,
        "strategy": "advertisements+covering",
        "merging": {
            "policy": "size 8", "rules": "full", "threshold": 0.1, "candidates": "any",
            "probabilities": "traffic", "entry": 1.0, "bandwidth": None, "period": 30.0,
        },
    }  # fmt: skip


def test_several_peers(capsys):
    given = ["--name", "b1", "--peers", "b2=127.0.0.1:2,b3=127.0.0.1:3", "--peer", "b4=[::1]:4"]
    assert main(["serve", "--check", "--json", *given]) == 0
    assert json.loads(capsys.readouterr().out)["network"]["peers"] == {
        "b2": "127.0.0.1:2", "b3": "127.0.0.1:3", "b4": "[::1]:4",
    }  # fmt: skip


def test_options_of_strategies(put, capsys):
    config = put(
        "t.toml",
        """
        name = "b1"
        [network]
        strategy = "flooding"
        [network.merging]
        policy = "every 10s"
        threshold = 0.2
        rules = "paper"
        bandwidth = "1 MB"
        period = "5 s"
        """,
    )
    options = ["--config", str(config)]
    more = ["--strategy", "simple", "--merging", "threshold=0.5", "--merging", "policy=size 9"]
    found = []
    for given in (options, [*options, *more]):
        assert main(["serve", "--check", "--json", *given]) == 0
        found.append(json.loads(capsys.readouterr().out)["network"])
    assert [one["strategy"] for one in found] == ["flooding", "simple"]
    first, second = (one["merging"] for one in found)
    assert (first["policy"], first["rules"], first["threshold"]) == ("every 10s", "paper", 0.2)
    assert (second["policy"], second["rules"], second["threshold"]) == ("size 9", "paper", 0.5)
    assert (second["bandwidth"], second["period"]) == (1_000_000, 5.0)


@each(
    "text, message",
    [
        ('listen = "127.0.0.1:1"', "listen is for a broker in a network, which has a name"),
        ('name = "b1"\n[peers]\nb1 = "127.0.0.1:1"', "'b1' cannot be a peer of itself"),
        ('name = "b1"\n[peers.b2]\nsecret = "s"', "peer 'b2' has no address"),
        ('name = "b 1"', "the name of a broker has 1 to 100 letters"),
        ('name = "b1"\nlisten = "0.0.0.0:1"', "any broker could link to this one"),
        (
            'name = "b1"\nlisten = "0.0.0.0:1"\n[network]\nsecret = "s"',
            "there is no TLS between brokers",
        ),
        ('name = "b1"\n[network]\nbeat = 20', "beat is above 0 and below patience"),
        ('name = "b1"\n[network]\nstrategy = "all"', "expected one of flooding, simple"),
        ('name = "b1"\n[network.merging]\npolicy = "often"', "cannot read 'often'"),
        ('name = "b1"\n[network.merging]\nthreshold = 2', "expected a number from 0 to 1"),
        ('name = "b1"\n[network.merging]\nsize = 2', "unknown setting 'size'"),
    ],
)
def test_a_network_that_cannot_be_is_refused(text, message, put, capsys):
    assert main(["serve", "--check", "--config", str(put("t.toml", text))]) == 1
    assert message in capsys.readouterr().err


@each(
    "options, message",
    [
        (["--http", "8420"], "--http: expected an address HOST:PORT"),
        (["--peer", "b2=127.0.0.1:1"], "give it a --name"),
        (["--name", "b1", "--peers", "b2=127.0.0.1:1,"], "--peer: expected NAME=HOST:PORT"),
        (["--name", "b1", "--peer", "b1=127.0.0.1:1"], "cannot be a peer of itself"),
        (["--name", "b1", "--peer", "b2"], "--peer: expected NAME=HOST:PORT"),
        (["--name", "b1", "--listen", "x"], "--listen: expected an address"),
        (["--strategy", "simple"], "give it a --name"),
        (["--name", "b1", "--strategy", "all"], "unknown strategy 'all'"),
        (["--name", "b1", "--merging", "size=3"], "with one of policy, rules, thres"),
        (["--name", "b1", "--merging", "threshold=3"], "expected a number from 0 to 1"),
    ],
)
def test_options_that_make_no_sense_are_misuse(options, message, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["serve", "--check", *options])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
