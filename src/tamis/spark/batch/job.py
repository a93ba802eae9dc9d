"""Events of a DataFrame with subscriptions of another: what `match` does."""

import logging
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.errors import OptionError, SubscriptionError, choose
from tamis.matcher import OUTPUTS, Matcher
from tamis.plan import asked_attributes
from tamis.schema import Schema, as_schema
from tamis.semantics import Semantics
from tamis.spark.batch.event_frames import Events, needed
from tamis.spark.batch.sinks import Matched, counting, counting_later, finished, output_schema
from tamis.spark.batch.worker import Matching, Published
from tamis.spark.compile.compilation import (
    DUPLICATES,
    Compiled,
    Meaning,
    Subscriptions,
    compile_all,
    folder_for_files,
    publish,
)
from tamis.spark.dead_letters.checks import bad_events, bad_filters
from tamis.spark.dead_letters.letters import listing
from tamis.spark.shards.job import Sharding, as_bytes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ON_BAD = ("keep", "fail")
MODES = ("auto", "whole", "sharded")
BUDGET = "512m"

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

    Of subscriptions with the same id the last row that can be used counts, or they are an error
    (``duplicates="error"``). Which row is the last one is said by the column `order`, and among
    equals by the order in which Spark reads them. A row that cannot be used is in `dead_letters`,
    or fails the job (``on_bad="fail"``).

    If the compiled subscriptions would be larger than `budget` (bytes, or a text like ``"2g"``),
    what an executor may hold of them, they are divided into shards, and each event is sent to those
    that may hold a match. `shards` asks for about so many of them; `mode` is ``"auto"``,
    ``"whole"`` or ``"sharded"``. The matches are the same.
    """

    def __init__(  # noqa: PLR0913 - all but four by name
        self, events: "DataFrame", subscriptions: "DataFrame", event_id: str = "id",
        semantics: str = "sql", *, output: str = "pairs", keep: Sequence[str] = (),
        schema: Schema | Mapping[str, str] | None = None,
        defaults: Mapping[str, Any] | None = None, duplicates: str = "last",
        order: str | None = None, on_bad: str = "keep", profile: Any = None,
        budget: int | str = BUDGET, mode: str = "auto", shards: int | None = None,
    ) -> None:  # fmt: skip
        choose("output", output, OUTPUTS)
        choose("treatment of bad rows", on_bad, ON_BAD)
        choose("treatment of duplicates", duplicates, DUPLICATES)
        choose("mode", mode, MODES)
        _check_shards(shards, mode)
        self._budget = as_bytes(budget)
        self._mode = mode
        self._shards = shards
        _check_frame("events", events)
        _check_frame("subscriptions", subscriptions)
        _warn_of_zone(events)
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
    def _reason(self) -> tuple[bool, str]:
        """Whether there are shards, and why."""
        if self._mode != "auto":
            return self._mode == "sharded", "as the mode says"
        if self._shards is not None:
            return True, "as shards were asked for"
        size = self._subscriptions.size.compiled
        is_sharded = size > self._budget
        word = "more" if is_sharded else "not more"
        return is_sharded, f"about {size:,} bytes are {word} than the budget of {self._budget:,}"

    @cached_property
    def compiled(self) -> Compiled | Sharding:
        """The compiled subscriptions: in one file, or in shards."""
        found: Compiled | Sharding
        if self._reason[0]:
            found = Sharding(
                self._subscriptions, self._meaning, self._duplicates, self._budget, self._shards
            )
        else:
            found = compile_all(
                self._subscriptions, self._meaning, self._duplicates, folder_for_files()
            )
        if found.counts.bad:
            message = listing(found.letters, found.counts.bad)
            if self._on_bad == "fail":
                if isinstance(found, Sharding):
                    found.release()
                raise OptionError(f"subscriptions: {message}")
            logger.warning("subscriptions: %s", message)
        return found

    @cached_property
    def _rules(self) -> Published:
        spark = self._events.frame.sparkSession
        return Published(publish(spark, self._path))

    @property
    def _path(self) -> Path:
        assert isinstance(self.compiled, Compiled)  # noqa: S101 - only asked for if there is a file
        return self.compiled.path

    @cached_property
    def _matcher(self) -> Matcher:
        return Matcher.load(self._path)

    @cached_property
    def _asked(self) -> set[str]:
        """The attributes that workers have to see."""
        if isinstance(self.compiled, Sharding):
            asked = self.compiled.asked
        else:
            asked = asked_attributes(self._matcher._engine, self._meaning.schema)  # noqa: SLF001 - ours
        return needed(self._meaning.schema, asked, self._meaning.semantics)

    @property
    def matches(self) -> "DataFrame":
        """The matches; found when Spark asks for them."""
        return self.matches_of(self._events)

    def matches_of(self, events: Events) -> "DataFrame":
        """The matches of events like those of this job."""
        if isinstance(self.compiled, Sharding):
            found = self.compiled.matches(events, self._asked, self.output, self._on_bad)
            return finished(_named(found, events, self.output), self.output)
        task = Matching(self._rules, events.layout(self._asked), self.output, self._on_bad)
        schema = output_schema(events, self.output, self._subscriptions.id_type)
        return finished(events.project(self._asked).mapInArrow(task, schema), self.output)

    def counted(self) -> Matched:
        """The matches, with the numbers of events and matches when they have been written."""
        if isinstance(self.compiled, Sharding):
            return counting_later(self.matches, self.output, self._events, self.bad_events())
        return counting(
            self._events, self._asked, self._rules, self.output, self._on_bad,
            self._subscriptions.id_type,
        )  # fmt: skip

    def release(self) -> None:
        """Let the executors forget the compiled subscriptions; what was found stays valid."""
        if "compiled" in self.__dict__ and isinstance(self.compiled, Sharding):
            self.compiled.release()

    @property
    def dead_letters(self) -> "DataFrame":
        """The rows that cannot be used: source, row, id, reason, line, column, value."""
        return bad_filters(self._subscriptions, self._meaning).unionByName(self.bad_events())

    def bad_events(self) -> "DataFrame":
        """The events that cannot be used."""
        try:
            asked = self._asked
        except SubscriptionError:  # none of them can be used; that is in their letters
            asked = set(self._meaning.schema)
        return bad_events(self._events, self._meaning, asked)

    @property
    def semantics(self) -> str:
        """The name of the semantics."""
        return self._meaning.semantics

    @property
    def is_sharded(self) -> bool:
        """Whether the subscriptions are divided into shards."""
        return self._reason[0]

    def explain(self) -> str:
        """What is matched, and how."""
        counts = self.compiled.counts
        is_sharded, why = self._reason
        lines = [
            f"subscriptions: {counts.rows:,} rows: {counts.good:,} usable, {counts.bad:,} bad",
            f"replaced by later rows of the same id: {counts.replaced:,}",
            f"{'in shards' if is_sharded else 'as a whole'}: {why}",
        ]
        if isinstance(self.compiled, Sharding):
            lines += self.compiled.explained()
        else:
            size = self.compiled.path.stat().st_size
            lines.append(f"compiled: {size:,} bytes, one file on every executor")
        lines += [
            f"attributes asked for: {', '.join(sorted(self._asked)) or 'none'}",
            f"semantics {self._meaning.semantics}, output {self.output}",
        ]
        if not is_sharded:
            lines.append(str(self._matcher.explain()))
        return "\n".join(lines)


def _named(matches: "DataFrame", events: Events, output: str) -> "DataFrame":
    """The columns of matches in shards with the names that users know."""
    from pyspark.sql import functions as f

    found = {"pairs": "subscription", "lists": "subscriptions", "counts": "count"}[output]
    names = ["event_id", found, *events.keep]
    pairs = zip(matches.columns, names, strict=True)
    return matches.select(*(f.col(own).alias(name) for own, name in pairs))


def _check_shards(shards: Any, mode: str) -> None:
    if shards is None:
        return
    if type(shards) is not int or shards < 1:
        raise OptionError(f"shards is a number of at least 1, not {shards!r}")
    if mode == "whole":
        raise OptionError("shards were asked for with mode='whole'; leave one of them out")


def _warn_of_zone(events: "DataFrame") -> None:
    """Filters mean UTC; Spark's own comparisons mean the zone of the session."""
    kinds = {field.dataType.typeName() for field in events.schema.fields}
    if not kinds & {"timestamp", "timestamp_ntz", "date"}:
        return
    zone = events.sparkSession.conf.get("spark.sql.session.timeZone")
    if zone not in {"UTC", "Etc/UTC", "Z", "GMT", "+00:00"}:
        logger.warning(
            "the zone of the session is %s; tamis takes times without a zone in filters, and dates,"
            " as UTC. Set spark.sql.session.timeZone to UTC to have both mean the same",
            zone,
        )


def _check_frame(what: str, frame: Any) -> None:
    # Asking for a method: classic Spark and Spark Connect have classes of their own.
    if not hasattr(frame, "mapInArrow"):
        raise OptionError(f"{what} must be a Spark DataFrame, not {type(frame).__name__}")
