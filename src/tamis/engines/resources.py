"""How much of the machine an engine may use, and the profile of events it may have."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tamis.engines.base import Options
from tamis.errors import CapacityError, EventError, FileError, OptionError, SchemaError
from tamis.semantics import Semantics

if TYPE_CHECKING:  # Arrow is heavy
    from tamis.predicates.event_batches import Batch
    from tamis.profiles import Profile

MOST_THREADS = 1024
MOST_PROFILED = 1 << 14  # events of a profile that are used


@dataclass(frozen=True)
class Resources(Options):
    """How much of the machine to use.

    `threads` match a large batch; 0 means one per processor. With `background`, segments are merged
    in a separate thread. `memory` is how many bytes compiling, or the matches of one batch, may
    take; 0 means half of what the machine has. `profile` says which predicates are rare: a
    `tamis.Profile`, the path of a saved one, or a table of events like those to come.
    """

    threads: int = 0
    background: bool = False
    memory: int = 0
    profile: Any = None

    def __post_init__(self) -> None:
        if type(self.threads) is not int or not 0 <= self.threads <= MOST_THREADS:
            raise OptionError(
                f"threads is a whole number from 0 to {MOST_THREADS}, not {self.threads!r}"
            )
        if type(self.background) is not bool:
            raise OptionError(f"background is True or False, not {self.background!r}")
        if type(self.memory) is not int or self.memory < 0:
            raise OptionError(f"memory is a number of bytes, not {self.memory!r}")
        object.__setattr__(self, "profile", loaded(self.profile))

    @property
    def bytes(self) -> int:
        """The memory that may be used."""
        return self.memory or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def profile_of(options: Resources, semantics: Semantics) -> "Batch | None":
    """Some events of the profile, spread over all of it; None if there is no profile."""
    if options.profile is None:
        return None
    import numpy as np

    from tamis.column_types import without_views
    from tamis.events.columns import as_table
    from tamis.predicates.event_batches import batch_of_table
    from tamis.profiles import Profile

    profile = options.profile
    try:
        table = profile.sample if isinstance(profile, Profile) else as_table(profile)
        if table is None:
            raise no_profile(profile)
        step = max(1, table.num_rows // MOST_PROFILED)
        places = np.arange(0, table.num_rows, step, dtype=np.int64)[:MOST_PROFILED]
        some = without_views(table).take(places)
        return batch_of_table(some, semantics, refuse_unknown=False)
    except EventError as error:
        raise OptionError(f"profile: {error}") from None


def as_profile(profile: Any) -> "Profile":
    """The profile that an option gives: a profile itself, its path, or a table of events."""
    from tamis.events.columns import as_table
    from tamis.profiles import Profile

    profile = loaded(profile)
    if isinstance(profile, Profile):
        return profile
    try:
        table = as_table(profile)
        if table is None:
            raise no_profile(profile)
        return Profile.of(table)
    except (EventError, SchemaError) as error:
        raise OptionError(f"profile: {error}") from None


def loaded(profile: Any) -> Any:
    """The profile at a path, read now; anything else as it is."""
    if not isinstance(profile, str | os.PathLike):
        return profile
    from tamis.profiles import Profile

    try:
        return Profile.load(os.fspath(profile))
    except FileError as error:
        raise OptionError(f"profile: {error}") from None


def no_profile(found: Any) -> OptionError:
    """The error for an option that is not a profile."""
    return OptionError(
        "profile is a tamis.Profile, the path of one, or a table of events, not "
        f"{type(found).__name__}"
    )


def check_memory(needed: int, allowed: int, what: str, advice: str) -> None:
    """Refuse what needs more memory than is allowed."""
    if needed > allowed:
        raise CapacityError(
            f"{what} needs about {_readable(needed)}, and {_readable(allowed)} are allowed; "
            f"{advice}, or allow more with options={{'memory': bytes}}"
        )


def _readable(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"
