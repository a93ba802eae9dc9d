"""Who asks: tokens, passwords, the free account."""

import asyncio
import base64
from dataclasses import fields

import argon2
import pytest

from cases import each
from tamis.broker import accounts as module
from tamis.broker.accounts import (
    Account,
    Accounts,
    check_password_hash,
    check_token_hash,
    new_token,
    password_hash,
    token_hash,
)
from tamis.broker.grants import Grants
from tamis.broker.limits import AccountLimits
from tamis.errors import Forbidden, OptionError, Unauthenticated

TOKEN = new_token()
PASSWORD = argon2.PasswordHasher(1, 8, 1).hash("Grüße")  # as quick as it can be
ALICE = Account("alice", tokens=frozenset([token_hash(TOKEN)]), password=PASSWORD)
BOB = Account("bob", password=PASSWORD)


def basic(text):
    return "Basic " + base64.b64encode(text.encode()).decode()


def asked(accounts, header):
    try:
        return asyncio.run(accounts.of_header(header))
    finally:
        accounts.close()


@each(
    "header, name",
    [
        (f"Bearer {TOKEN}", "alice"),
        (f"bearer  {TOKEN} ", "alice"),
        (basic("alice:Grüße"), "alice"),
        (basic(f"alice:{TOKEN}"), "alice"),
        (basic("bob:Grüße"), "bob"),
    ],
)
def test_an_account_is_found(header, name):
    assert asked(Accounts([ALICE, BOB]), header).name == name


@each(
    "header, message",
    [
        (None, "this broker has accounts"),
        ("Bearer nonsense", "token is not known"),
        ("Bearer " + token_hash(TOKEN), "token is not known"),  # the hash opens nothing
        (basic("alice:wrong"), "name or the password is wrong"),
        (basic("carol:Grüße"), "name or the password is wrong"),
        (basic(f"bob:{TOKEN}"), "name or the password is wrong"),  # another one's token
        (basic("alice:\ud83d".encode("utf-8", "replace").decode()), "wrong"),
        (basic("no colon"), "NAME:PASSWORD"),
        ("Basic ???", "NAME:PASSWORD"),
        ("Digest x", "Bearer TOKEN or Basic"),
        ("", "Bearer TOKEN or Basic"),
    ],
)
def test_others_are_refused(header, message):
    with pytest.raises(Unauthenticated, match=message):
        asked(Accounts([ALICE, BOB]), header)


def test_a_password_is_verified_once(monkeypatch):
    calls = []
    verify = module._verify
    monkeypatch.setattr(module, "_verify", lambda *given: calls.append(given) or verify(*given))

    async def ask():
        accounts = Accounts([BOB])
        for password in ("Grüße", "Grüße", "wrong", "wrong", "Grüße"):
            try:
                await accounts.of_login("bob", password)
            except Unauthenticated:
                assert password != "Grüße"  # noqa: S105 - of tests
        accounts.close()

    asyncio.run(ask())
    assert [password for _, password in calls] == ["Grüße", "wrong", "wrong"]


def test_without_accounts_everybody_is_the_guest():
    accounts = Accounts()
    assert [one.name for one in accounts] == ["guest"]
    guest = asked(accounts, "Bearer anything")
    guest.require_managing("t")
    assert guest.sees("t")
    assert guest.metrics
    assert accounts.of_token("x") is guest
    assert asyncio.run(accounts.of_login("a", "b")) is guest


def test_who_sees_and_manages_a_topic():
    desk = Account("desk", publish=Grants({"q.*": "TRUE"}), topics=Grants({"desk.*": "TRUE"}))
    assert [desk.sees(name) for name in ("q.a", "desk.x", "other")] == [True, True, False]
    desk.require_managing("desk.x")
    with pytest.raises(Forbidden, match=r"create, change or delete topic 'q\.a'"):
        desk.require_managing("q.a")


def test_names_and_tokens_are_not_shared():
    with pytest.raises(OptionError, match="'alice' is there twice"):
        Accounts([ALICE, ALICE])
    with pytest.raises(OptionError, match="'alice' and 'eve' have the same token"):
        Accounts([ALICE, Account("eve", tokens=ALICE.tokens)])
    with pytest.raises(OptionError, match="choices: narrow, refuse"):
        Account("eve", wider="ignore")


def test_tokens_cannot_be_guessed_and_are_stored_hashed():
    assert len({new_token() for _ in range(10)}) == 10
    assert TOKEN not in token_hash(TOKEN)
    assert check_token_hash(token_hash(TOKEN)) == token_hash(TOKEN)
    hashed = password_hash("Grüße")
    assert check_password_hash(hashed) == hashed
    for wrong in (TOKEN, "sha256:12", "sha256:" + "g" * 64):
        with pytest.raises(OptionError, match="tamis account NAME makes"):
            check_token_hash(wrong)
    with pytest.raises(OptionError, match="--password makes it"):
        check_password_hash("secret")


def test_an_account_with_another_right_is_another_one():
    rights = {
        "metrics": True, "quench": True, "wider": "refuse", "password": "x",
        "tokens": frozenset("t"), "limits": AccountLimits(connections=1),
        "publish": Grants({"a": "TRUE"}), "subscribe": Grants({"a": "TRUE"}),
        "topics": Grants({"a": "TRUE"}),
    }  # fmt: skip
    assert rights.keys() == {field.name for field in fields(Account)} - {"name"}
    for name, value in rights.items():
        assert not Account("a", **{name: value}).is_like(Account("a")), name
