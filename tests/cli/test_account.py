"""``tamis account``: the lines of an account, and its token."""

import asyncio
import io
import json
import re
from pathlib import Path

import pytest

from tamis.broker.settings_file import settings_of
from tamis.cli import main
from tamis.errors import Unauthenticated


def accounts_of(lines):
    return settings_of(lines, Path("tamis.toml")).new_accounts()


@pytest.mark.parametrize("name", ["desk", 'a "b".c', "Zoë"])
def test_the_token_opens_the_account_of_the_lines(name, capsys):
    assert main(["account", name]) == 0
    output = capsys.readouterr()
    token = re.search(r"shown only now: (\S+)", output.err)[1]
    assert token not in output.out
    accounts = accounts_of(output.out)
    assert accounts.of_token(token).name == name
    with pytest.raises(Unauthenticated):
        accounts.of_token(token + "x")


def test_a_password_is_read_from_standard_input(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("open sesame\n"))
    assert main(["account", "desk", "--password", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["token"] is None
    accounts = accounts_of(answer["toml"])
    assert asyncio.run(accounts.of_login("desk", "open sesame")).name == "desk"
    accounts.close()


def test_a_password_is_asked_for_twice(monkeypatch, capsys):
    given = iter(["one", "two"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("getpass.getpass", lambda _: next(given))
    assert main(["account", "desk", "--password"]) == 1
    assert "not the same" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", " ", "a\nb"])
def test_names_that_cannot_be_read_are_refused(name, capsys):
    assert main(["account", name]) == 1
    assert "a name that can be read" in capsys.readouterr().err


def test_an_empty_password_is_refused(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    assert main(["account", "desk", "--password"]) == 1
    assert "the password is empty" in capsys.readouterr().err
