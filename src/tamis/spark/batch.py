"""Events of a DataFrame with subscriptions of another: what `match` does."""

import logging
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tamis.errors import OptionError, choose
from tamis.matcher import OUTPUTS, Matcher
from tamis.plan import asked_attributes
from tamis.schema import Schema, as_schema
from tamis.semantics import Semantics
from tamis.spark.checking import bad_events, bad_filters
from tamis.spark.compiling import (
    DUPLICATES,
    Compiled,
    Meaning,
    Subscriptions,
    compile_all,
    folder_for_files,
    publish,
)
from tamis.spark.frames import Events, needed
from tamis.spark.letters import listing
from tamis.spark.worker import Matching, Published

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ON_BAD = ("keep", "fail")

logger = logging.getLogger("tamis")


def match(
    events: "DataFrame", subscriptions: "DataFrame", event_id: str = "id", semantics: str = "sql",
    **settings: Any,
) -> "DataFrame":  # fmt: skip
    """The matches of events with subscriptions: a DataFrame ``(event_id, subscription)``.

    `subscriptions` has the columns ``id`` and ``filter``; the columns of `events` are the
    attributes, fields of records by their path. `event_id` names the column that tells events
    apart; it may also be an attribute. `settings` are those of `MatchJob`, which also has the rows
    that could not be used: they are left out here, and a warning is logged if there are any among
    the subscriptions.

    Subscriptions are compiled now, events are matched when Spark asks for the matches.
    """
    return MatchJob(events, subscriptions, event_id, semantics, **settings).matches


class MatchJob:
    """Events and subscriptions that are to be matched, with all there is to know about it.

    `output` is ``"pairs"``, ``"lists"`` (``subscriptions``, ascending) or ``"counts"``
    (``count``); the latter two have a row for every event. `keep` names columns of the events that
    the matches shall have, too.

    `schema` are the attributes with their types and domains, if they are not to be taken from the
    columns; an attribute that no column has is missing in all events. `semantics` and `defaults`
    are those of `tamis.Matcher`.

    Of subscriptions with the same id the last row counts, or they are an error
    (``duplicates="error"``). Which row is the last one is said by the column `order`, and among
    equals by the order in which Spark reads them. A row that cannot be used is in `dead_letters`,
    or fails the job (``on_bad="fail"``).
    """

    def __init__(  # noqa: PLR0913 - all but four by name
        self, events: "DataFrame", subscriptions: "DataFrame", event_id: str = "id",
        semantics: str = "sql", *, output: str = "pairs", keep: Sequence[str] = (),
        schema: Schema | Mapping[str, str] | None = None,
        defaults: Mapping[str, Any] | None = None, duplicates: str = "last",
        order: str | None = None, on_bad: str = "keep", profile: Any = None,
    ) -> None:  # fmt: skip
        choose("output", output, OUTPUTS)
        choose("treatment of bad rows", on_bad, ON_BAD)
        choose("treatment of duplicates", duplicates, DUPLICATES)
        _check_frame("events", events)
        _check_frame("subscriptions", subscriptions)
        if subscriptions.isStreaming:
            raise OptionError(
                "the subscriptions are a stream; match_stream takes subscriptions that change"
            )
        self.output = output
        self._on_bad = on_bad
        self._duplicates = duplicates
        given = None if schema is None else as_schema(schema)
        self._events = Events(events, event_id, given, keep)
        self._subscriptions = Subscriptions(subscriptions, order)
        Semantics(semantics, self._events.schema, defaults)  # refuses bad ones now
        self._meaning = Meaning(
            self._events.schema, semantics, defaults, self._events.skipped, profile
        )

    @cached_property
    def compiled(self) -> Compiled:
        """The compiled subscriptions."""
        found = compile_all(
            self._subscriptions, self._meaning, self._duplicates, folder_for_files()
        )
        if found.counts.bad:
            message = listing(found.letters, found.counts.bad)
            if self._on_bad == "fail":
                raise OptionError(f"subscriptions: {message}")
            logger.warning("subscriptions: %s", message)
        return found

    @cached_property
    def _rules(self) -> Published:
        spark = self._events.frame.sparkSession
        return Published(publish(spark, self.compiled.path))

    @cached_property
    def _matcher(self) -> Matcher:
        return Matcher.load(self.compiled.path)

    @cached_property
    def _asked(self) -> set[str]:
        """The attributes that workers have to see."""
        asked = asked_attributes(self._matcher._engine, self._meaning.schema)  # noqa: SLF001 - ours
        return needed(self._meaning.schema, asked, self._meaning.semantics)

    @property
    def matches(self) -> "DataFrame":
        """The matches; found when Spark asks for them."""
        return self.matches_of(self._events)

    def matches_of(self, events: Events) -> "DataFrame":
        """The matches of events like those of this job."""
        task = Matching(self._rules, events.layout(self._asked), self.output, self._on_bad)
        return finished(
            events.project(self._asked).mapInArrow(task, self._output_schema(events)), self.output
        )

    @property
    def dead_letters(self) -> "DataFrame":
        """The rows that cannot be used: source, row, id, reason, line, column, value."""
        filters = bad_filters(self._subscriptions, self._meaning)
        return filters.unionByName(bad_events(self._events, self._meaning, self._asked))

    def _output_schema(self, events: Events) -> str:
        kind = self._subscriptions.id_type
        found = {
            "pairs": f"subscription {kind}",
            "lists": f"subscriptions array<{kind}>",
            "counts": "count bigint",
        }
        kept = [f"`{_quoted(name)}` {of.simpleString()}" for name, of in events.kept_fields()]
        return ", ".join([f"event_id {events.id_type.simpleString()}", found[self.output], *kept])

    def explain(self) -> str:
        """What is matched, and how."""
        counts = self.compiled.counts
        lines = [
            f"subscriptions: {counts.rows:,} rows: {counts.good:,} usable, {counts.bad:,} bad",
            f"replaced by later rows of the same id: {counts.replaced:,}",
            f"compiled: {self.compiled.path.stat().st_size:,} bytes, one file on every executor",
            f"attributes asked for: {', '.join(sorted(self._asked)) or 'none'}",
            f"semantics {self._meaning.semantics}, output {self.output}",
            str(self._matcher.explain()),
        ]
        return "\n".join(lines)


def finished(matches: "DataFrame", output: str) -> "DataFrame":
    """Lists in ascending order, however the subscriptions were compiled."""
    if output != "lists":
        return matches
    from pyspark.sql import functions as f

    return matches.withColumn("subscriptions", f.array_sort("subscriptions"))


def _quoted(name: str) -> str:
    return name.replace("`", "``")


def _check_frame(what: str, frame: Any) -> None:
    # Asking for a method: classic Spark and Spark Connect have classes of their own.
    if not hasattr(frame, "mapInArrow"):
        raise OptionError(f"{what} must be a Spark DataFrame, not {type(frame).__name__}")
