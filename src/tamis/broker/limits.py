"""Limits of an account: connections, subscriptions, bytes, events per second."""

from dataclasses import dataclass

from tamis.broker.quantities import is_count
from tamis.errors import LimitReached, OptionError, counted


@dataclass(frozen=True)
class AccountLimits:
    """How much an account may have and send; None means no limit."""

    connections: int | None = 10_000
    subscriptions: int | None = 10_000_000
    event_bytes: int = 1_000_000  # of one event
    body_bytes: int = 64_000_000  # of one request, which may have many events
    events_per_second: float | None = None

    def __post_init__(self) -> None:
        for name in ("connections", "subscriptions", "event_bytes", "body_bytes"):
            value = getattr(self, name)
            if value is None and name in {"connections", "subscriptions"}:
                continue
            if not is_count(value):
                raise OptionError(f"{name} is a whole number from 1, not {value!r}")
        rate: object = self.events_per_second
        if rate is not None and (
            isinstance(rate, bool) or not isinstance(rate, int | float) or not rate > 0
        ):
            raise OptionError(f"events_per_second is a number above 0, not {rate!r}")


class Usage:
    """What one account has and sends now, held to its limits.

    All connections of the account share it. The rate is a token bucket that holds the events of one
    second: whoever finds it not empty may send a whole batch, and the account then waits until the
    debt is paid. So batches of any size keep the rate on average, and none is too large to be sent.
    """

    def __init__(self, account: str, limits: AccountLimits) -> None:
        self.account = account
        self.limits = limits
        self.connections = 0
        self.subscriptions = 0
        self._tokens: float | None = None  # None: full
        self._filled_at = 0.0

    def connect(self) -> None:
        """Count one more connection, or raise `LimitReached`."""
        self._check("connection", self.connections, self.limits.connections)
        self.connections += 1

    def disconnect(self) -> None:
        """Count one connection fewer."""
        self.connections -= 1

    def subscribe(self) -> None:
        """Count one more subscription, or raise `LimitReached`."""
        self._check("subscription", self.subscriptions, self.limits.subscriptions)
        self.subscriptions += 1

    def unsubscribe(self) -> None:
        """Count one subscription fewer."""
        self.subscriptions -= 1

    def publish(self, events: int, now: float) -> None:
        """Count events that are sent at a time in seconds, or raise `LimitReached`."""
        rate = self.limits.events_per_second
        if rate is None:
            return
        full = max(1.0, rate)
        if self._tokens is None:
            self._tokens, self._filled_at = full, now
        # A clock that was set back gives nothing, and takes nothing.
        self._tokens = min(full, self._tokens + max(0.0, now - self._filled_at) * rate)
        self._filled_at = now
        if self._tokens < 1.0 - 1e-9:  # sums of fractions of a token
            wait = (1.0 - self._tokens) / rate
            raise LimitReached(
                f"account {self.account!r} may publish {rate:g} events per second on average; "
                f"try again in {wait:.3g} s",
                retry_after=wait,
            )
        self._tokens -= events

    def _check(self, what: str, count: int, most: int | None) -> None:
        if most is not None and count >= most:
            raise LimitReached(
                f"account {self.account!r} has {counted(count, what)}, and may have no more"
            )
