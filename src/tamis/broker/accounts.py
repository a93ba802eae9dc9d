"""Accounts: who asks, and what they may do.

A token is stored as its SHA-256: tokens are random, and need no slow hash. A password is stored as
an argon2id hash, which is slow and takes much memory on purpose: it is verified in one thread at a
time, and a password that was right is remembered, under a key that only this process has.
"""

import asyncio
import base64
import binascii
import functools
import hashlib
import hmac
import secrets
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tamis.broker.grants import Grants, forbidden
from tamis.broker.limits import AccountLimits, Usage
from tamis.errors import MissingDependency, OptionError, Unauthenticated, choose
from tamis.language.expression import MATCHES_ALL

if TYPE_CHECKING:
    from argon2 import PasswordHasher

WIDER = ("narrow", "refuse")  # what happens to a filter that is wider than the grant
GUEST = "guest"
_TOKEN_HASH = "sha256:"  # noqa: S105 - the beginning of a hash
_REMEMBERED = 10_000  # passwords that were right


@dataclass(frozen=True, eq=False)
class Account:
    """Who asks, what it may do, and what it has."""

    name: str
    tokens: frozenset[str] = frozenset()  # hashes
    password: str | None = None  # a hash
    publish: Grants = field(default_factory=Grants)
    subscribe: Grants = field(default_factory=Grants)
    topics: Grants = field(default_factory=Grants)  # may be created, changed and deleted
    metrics: bool = False  # may see the metrics, which name subscriptions of all accounts
    quench: bool = False  # may know what others want of the topics that it publishes to
    wider: str = "narrow"
    limits: AccountLimits = field(default_factory=AccountLimits)

    def __post_init__(self) -> None:
        choose("treatment of wider filters", self.wider, WIDER)

    @functools.cached_property
    def usage(self) -> Usage:
        """What all connections of this account have and send."""
        return Usage(self.name, self.limits)

    def take_over(self, before: "Account") -> None:
        """Go on counting for an account of the same name, under the limits of this one."""
        usage = before.usage
        usage.limits = self.limits
        self.__dict__["usage"] = usage  # where `cached_property` keeps it

    def is_like(self, other: "Account") -> bool:
        """Whether two accounts may do the same, and are known by the same secrets."""
        return _content(self) == _content(other)

    def sees(self, topic: str) -> bool:
        """Whether the account may know that there is such a topic, and its schema."""
        grants = self.publish, self.subscribe, self.topics
        return any(grant.find(topic) is not None for grant in grants)

    def require_managing(self, topic: str) -> None:
        """Raise `Forbidden` unless the account may create, change and delete a topic."""
        if self.topics.find(topic) is None:
            raise forbidden(self, "create, change or delete", topic)

    def __repr__(self) -> str:
        return f"<Account {self.name!r}>"


def _content(account: Account) -> tuple[object, ...]:
    grants = account.publish, account.subscribe, account.topics
    return (
        account.name, account.tokens, account.password, *(one.filters for one in grants),
        account.metrics, account.quench, account.wider, account.limits,
    )  # fmt: skip


def free_account(name: str = GUEST, limits: AccountLimits | None = None) -> Account:
    """An account that may do everything."""
    every = Grants({"*": MATCHES_ALL})
    return Account(
        name,
        publish=every,
        subscribe=every,
        topics=every,
        metrics=True,
        quench=True,
        limits=limits or AccountLimits(),
    )


class Accounts:
    """All accounts of a broker; without any, everybody is the free account ``guest``."""

    def __init__(
        self, accounts: Iterable[Account] = (), limits: AccountLimits | None = None
    ) -> None:
        self._by_name, self._by_token = _tables(accounts)
        self.guest = None if self._by_name else free_account(limits=limits)
        self._passwords = _Passwords()

    def check_change(self, accounts: Collection[object]) -> None:
        """Refuse to get a first account, or to lose all: who may connect depends on that."""
        if bool(accounts) != (self.guest is None):
            raise OptionError(
                "the broker has no accounts and would get some, or the other way round: that needs "
                "a restart"
            )

    def become(self, accounts: Iterable[Account], limits: AccountLimits) -> set[str]:
        """Replace all accounts; returns the names of those that have changed or are gone.

        What connections have and send is counted on.
        """
        by_name, by_token = _tables(accounts)
        self.check_change(by_name)
        if self.guest is not None:
            by_name = {self.guest.name: free_account(self.guest.name, limits)}
        before = {account.name: account for account in self}
        for name, account in by_name.items():
            if name in before:
                account.take_over(before[name])
        if self.guest is not None:
            self.guest = by_name[self.guest.name]
        else:
            self._by_name, self._by_token = by_name, by_token
        return {
            name for name, one in before.items()
            if name not in by_name or not one.is_like(by_name[name])
        }  # fmt: skip

    def __iter__(self) -> Iterator[Account]:
        return iter(self._by_name.values() if self.guest is None else [self.guest])

    def of_token(self, token: str) -> Account:
        """The account with a token, or `Unauthenticated`."""
        if self.guest is not None:
            return self.guest
        account = self._by_token.get(token_hash(token))
        if account is None:
            raise Unauthenticated("the token is not known")
        return account

    async def of_login(self, name: str, secret: str) -> Account:
        """The account with a name and its password or one of its tokens, or `Unauthenticated`."""
        if self.guest is not None:
            return self.guest
        account = self._by_name.get(name)
        if account is not None and token_hash(secret) in account.tokens:
            return account
        known = None if account is None else account.password
        if not await self._passwords.is_right(known, secret) or account is None:
            raise Unauthenticated("the name or the password is wrong")
        return account

    async def of_header(self, authorization: str | None) -> Account:
        """The account of an ``Authorization`` header: ``Bearer TOKEN`` or ``Basic ...``."""
        if self.guest is not None:
            return self.guest
        if authorization is None:
            raise Unauthenticated(
                "this broker has accounts: send Authorization: Bearer TOKEN, or a name and a "
                "password as Basic"
            )
        scheme, _, value = authorization.strip().partition(" ")
        match scheme.lower():
            case "bearer":
                return self.of_token(value.strip())
            case "basic":
                return await self.of_login(*_basic(value.strip()))
            case _:
                raise Unauthenticated("Authorization is Bearer TOKEN or Basic BASE64")

    def close(self) -> None:
        """End the thread that verifies passwords."""
        self._passwords.close()


def _tables(accounts: Iterable[Account]) -> tuple[dict[str, Account], dict[str, Account]]:
    """Accounts by their names, and by the hashes of their tokens."""
    by_name: dict[str, Account] = {}
    by_token: dict[str, Account] = {}
    for account in accounts:
        if account.name in by_name:
            raise OptionError(f"account {account.name!r} is there twice")
        by_name[account.name] = account
        for token in account.tokens:
            if token in by_token:
                raise OptionError(
                    f"accounts {by_token[token].name!r} and {account.name!r} have the same token"
                )
            by_token[token] = account
    return by_name, by_token


class _Passwords:
    """Verifies passwords, one at a time."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tamis-passwords")
        self._key = secrets.token_bytes(32)
        self._right: set[bytes] = set()

    async def is_right(self, known: str | None, password: str) -> bool:
        """Whether a password has this hash; without one it takes as long: names stay secret."""
        given = f"{known}\0{password}".encode("utf-8", "surrogatepass")
        seal = hmac.digest(self._key, given, "sha256")
        if seal in self._right:
            return True
        loop = asyncio.get_running_loop()
        right = await loop.run_in_executor(self._thread, _verify, known, password)
        if right:
            if len(self._right) >= _REMEMBERED:
                self._right.clear()
            self._right.add(seal)
        return right

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


def new_token() -> str:
    """A token that nobody can guess."""
    return f"tamis_{secrets.token_urlsafe(32)}"


def token_hash(token: str) -> str:
    """What is stored of a token."""
    return _TOKEN_HASH + hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def password_hash(password: str) -> str:
    """What is stored of a password."""
    return _hasher().hash(password)


def check_token_hash(text: str) -> str:
    """The hash of a token, if it is one; else an `OptionError`."""
    digits = text.removeprefix(_TOKEN_HASH)
    if digits == text or len(digits) != 64 or not set(digits) <= set("0123456789abcdef"):
        raise OptionError(
            "a token is stored as sha256: and 64 digits; tamis account NAME makes both"
        )
    return text


def check_password_hash(text: str) -> str:
    """The hash of a password, if it is one; else an `OptionError`."""
    import argon2

    try:
        argon2.extract_parameters(text)
    except argon2.exceptions.InvalidHash:
        raise OptionError(
            "a password is stored as its argon2 hash; tamis account NAME --password makes it"
        ) from None
    return text


@functools.cache
def _hasher() -> "PasswordHasher":
    try:
        import argon2
    except ImportError:
        raise MissingDependency(
            'passwords need argon2-cffi; install it with: pip install "tamis[broker]"'
        ) from None
    return argon2.PasswordHasher()


@functools.cache
def _absent() -> str:
    """The hash of a password that nobody has."""
    return password_hash(secrets.token_urlsafe(32))


def _verify(known: str | None, password: str) -> bool:
    from argon2.exceptions import VerificationError

    try:
        _hasher().verify(known or _absent(), password)
    except (VerificationError, UnicodeEncodeError):
        return False
    return known is not None


def _basic(value: str) -> tuple[str, str]:
    """The name and the password of ``Authorization: Basic``."""
    try:
        text = base64.b64decode(value, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        raise Unauthenticated("Authorization: Basic is not base64 of NAME:PASSWORD") from None
    name, colon, password = text.partition(":")
    if not colon:
        raise Unauthenticated("Authorization: Basic is not base64 of NAME:PASSWORD")
    return name, password
