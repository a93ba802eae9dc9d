"""All that it takes to make an empty matcher, in a form that can be sent to another process."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tamis.engines.resources import loaded
from tamis.matcher import Matcher
from tamis.schema import Schema
from tamis.semantics import Semantics


@dataclass(frozen=True)
class MatcherSettings:
    """What filters can use, and what they mean.

    `skipped` are columns of the events that no filter can use, with their types: messages about
    unknown attributes mention them. `profile` tells engines what events to expect.
    """

    schema: Schema
    semantics: str = "sql"
    defaults: Mapping[str, Any] | None = None
    skipped: Mapping[str, str] | None = None
    profile: Any = None

    def __post_init__(self) -> None:
        # A worker on another machine does not have the file of a profile: it gets the content.
        object.__setattr__(self, "profile", loaded(self.profile))
        self.meaning()  # refuses bad settings now

    def meaning(self) -> Semantics:
        """The semantics as an object, like `Matcher.meaning`."""
        return Semantics(self.semantics, self.schema, self.defaults)

    def options(self) -> dict[str, Any]:
        """The options of an engine that is made for the profile."""
        return {} if self.profile is None else {"profile": self.profile}

    def matcher(self, options: Mapping[str, Any] | None = None) -> Matcher:
        """A matcher without subscriptions; `options` are those of its engine."""
        return Matcher(
            self.schema, semantics=self.semantics, defaults=self.defaults,
            options=self.options() | dict(options or {}),
        )  # fmt: skip
