"""`match` and `MatchJob`: events of a DataFrame with subscriptions of another, on the driver."""

import logging
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.container import fingerprint_of
from tamis.dead_letters import BAD_ROW_TREATMENTS, listing
from tamis.errors import OptionError, SubscriptionError, choose
from tamis.events.columns import as_table
from tamis.events.values import moment_of_call
from tamis.given_events import kept_names
from tamis.matcher import OUTPUTS, Matcher
from tamis.matcher_settings import MatcherSettings
from tamis.schema import Schema, as_schema
from tamis.spark.batch.match_counts import (
    CountedMatches,
    MatchCounts,
    counted_afterwards,
    counted_matches,
    written_afterwards,
    written_matches,
)
from tamis.spark.batch.worker import MatchTask
from tamis.spark.compile.job import CompiledRules, compile_subscriptions
from tamis.spark.compile.sent_code import start_compiling
from tamis.spark.compile.sent_rules import SentRules, folder_for_files, send_to_executors
from tamis.spark.dead_letters.job import bad_events, bad_filters
from tamis.spark.files.atomic_folders import MATCHES, WRITE_OPTIONS
from tamis.spark.files.folders import workers_can_write
from tamis.spark.session.failures import spark_errors
from tamis.spark.session.given_session import prepare
from tamis.spark.shards.budget import BUDGET, Sharding
from tamis.spark.shards.job import ShardedRules
from tamis.spark.tables.event_table import (
    EventTable,
    attributes_to_read,
    column_at,
)
from tamis.spark.tables.match_schema import check_match_names, spark_schema, with_sorted_lists
from tamis.spark.tables.subscription_table import DUPLICATES, SubscriptionTable
from tamis.visible_text import visible_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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

    Subscriptions are compiled now, events are matched when Spark computes the matches.
    """
    return MatchJob(events, subscriptions, event_id, semantics, **settings).matches


class MatchJob:
    """The matching of events with subscriptions: the matches, the bad rows, and the plan.

    `output` is ``"pairs"``, ``"lists"`` (``subscriptions``, ascending) or ``"counts"``
    (``count``); the latter two have a row for every event. `keep` names columns of the events that
    the matches have as well.

    `schema` gives the attributes with their types and domains, if they are not to be taken from the
    columns; an attribute that no column has is missing in all events. `semantics` and `defaults`
    are those of `tamis.Matcher`.

    Of subscriptions with the same id the last row that can be used counts, or they are an error
    (``duplicates="error"``). The column `order` says which row is later, and among equals the order
    in which Spark reads them. A row that cannot be used is in `dead_letters`,
    or fails the job (``on_bad="fail"``).

    `budget` is how much of the compiled subscriptions an executor may hold (bytes, or a text like
    ``"2g"``). If they would be larger, they are divided into shards, and each event is sent to the
    shards that may match it. `shards` is about how many shards to make; `mode` is ``"auto"``,
    ``"whole"`` or ``"sharded"``. The matches are the same.

    `keep_rules` names columns of the subscriptions that pairs have as well, and with `keep_id_name`
    the column of the ids of events keeps its name instead of ``event_id``. `subscriptions` may also
    be a table of pandas, polars or Arrow. `now` is what ``now()`` is in filters, for all events and
    in every task: a datetime or a text; if it is left out, the time at which the job is made.
    """

    def __init__(  # noqa: PLR0913 - all but four by name
        self, events: "DataFrame", subscriptions: "DataFrame", event_id: str = "id",
        semantics: str = "sql", *, output: str = "pairs", keep: Sequence[str] = (),
        schema: Schema | Mapping[str, str] | None = None,
        defaults: Mapping[str, Any] | None = None, duplicates: str = "last",
        order: str | None = None, on_bad: str = "keep", profile: Any = None,
        budget: int | str = BUDGET, mode: str = "auto", shards: int | None = None,
        keep_rules: Sequence[str] = (), keep_id_name: bool = False, now: Any = None,
    ) -> None:  # fmt: skip
        choose("output", output, OUTPUTS)
        choose("treatment of bad rows", on_bad, BAD_ROW_TREATMENTS)
        choose("treatment of duplicates", duplicates, DUPLICATES)
        self._sharding = Sharding.checked(mode, budget, shards)
        _check_frame("events", events)
        prepare(events.sparkSession)
        subscriptions = _as_frame(subscriptions, events.sparkSession)
        _warn_of_zone(events)
        if subscriptions.isStreaming:
            raise OptionError(
                "the subscriptions are a stream; match_stream takes subscriptions that change"
            )
        self.output = output
        self._on_bad = on_bad
        self._duplicates = duplicates
        given = None if schema is None else as_schema(schema)
        self._events = EventTable(events, event_id, given, keep, moment_of_call(now))
        self._subscriptions = SubscriptionTable(subscriptions, order)
        self.id_name = event_id if keep_id_name else "event_id"
        self._keep_rules = kept_names(keep_rules)
        check_match_names(self.id_name, output, self._events.keep, self._keep_rules)
        self._subscriptions.check_kept(self._keep_rules)
        self._settings = MatcherSettings(
            self._events.schema, semantics, defaults, self._events.skipped, profile
        )

    @cached_property
    def _reason(self) -> tuple[bool, str]:
        """Whether there are shards, and why."""
        return self._sharding.choice(lambda: self._subscriptions.size.compiled)

    @cached_property
    def compiled(self) -> CompiledRules | ShardedRules:
        """The compiled subscriptions: in one file, or in shards."""
        with spark_errors():
            return self._compile()

    def _compile(self) -> CompiledRules | ShardedRules:
        found: CompiledRules | ShardedRules
        start_compiling(self._events.frame.sparkSession)
        if self._reason[0]:
            found = ShardedRules.compiled(
                self._subscriptions, self._settings, self._duplicates, self._sharding
            )
        else:
            found = compile_subscriptions(
                self._subscriptions, self._settings, self._duplicates, folder_for_files()
            )
        if found.counts.bad:
            message = listing(found.letters, found.counts.bad)
            if self._on_bad == "fail":
                if isinstance(found, ShardedRules):
                    found.release()
                raise OptionError(f"subscriptions: {message}")
            logger.warning("subscriptions: %s", message)
        return found

    @cached_property
    def _rules(self) -> SentRules:
        name = send_to_executors(self._events.frame.sparkSession, self._path)
        return SentRules(name, fingerprint=fingerprint_of(self._path))

    @property
    def _path(self) -> Path:
        assert isinstance(self.compiled, CompiledRules)  # noqa: S101 - only used if there is a file
        return self.compiled.path

    @cached_property
    def _attributes(self) -> set[str]:
        """The attributes that workers read."""
        of = self._settings
        return attributes_to_read(of.schema, self.compiled.attributes, of.semantics)

    @cached_property
    def matches(self) -> "DataFrame":
        """The matches, found when Spark computes the DataFrame; always the same one."""
        return self.matches_of(self._events)

    def matches_of(self, events: EventTable) -> "DataFrame":
        """The matches of events with the same columns as those of this job."""
        if isinstance(self.compiled, ShardedRules):
            found = self.compiled.matches(events, self._attributes, self.output, self._on_bad)
            return self._with_names(with_sorted_lists(found, self.output))
        schema = spark_schema(events, self.output, self._subscriptions.id_type)
        found = events.project(self._attributes).mapInArrow(self._task(events), schema)
        return self._with_names(found)

    def _task(self, events: EventTable) -> MatchTask:
        layout = events.layout(self._attributes)
        return MatchTask(self._rules, layout, self.output, self._on_bad)

    def write(self, place: str, format: str) -> MatchCounts:
        """Match, and write the folder of matches to a place; returns how many there are."""
        # Columns of rules are joined to the matches by Spark, which has them then, and writes them.
        if format != "parquet" or self._keep_rules or not workers_can_write(place):
            matched = self.counted()
            writer = matched.frame.write.format(format).options(**WRITE_OPTIONS.get(format, {}))
            writer.mode("overwrite").save(f"{place}/{MATCHES}")
            return matched.counts()
        if isinstance(self.compiled, ShardedRules):
            return written_afterwards(
                self.matches, self.output, self._events, self.bad_events(), place, MATCHES
            )
        schema = spark_schema(
            self._events, self.output, self._subscriptions.id_type, id_name=self.id_name
        )
        task = self._task(self._events)
        return written_matches(self._events, self._attributes, task, schema, place, MATCHES)

    def counted(self) -> CountedMatches:
        """The matches, which count events and matches while they are written."""
        if isinstance(self.compiled, ShardedRules):
            return counted_afterwards(self.matches, self.output, self._events, self.bad_events())
        found = counted_matches(
            self._events, self._attributes, self._rules, self.output, self._on_bad,
            self._subscriptions.id_type,
        )  # fmt: skip
        return found._replace(frame=self._with_names(found.frame))

    def _with_names(self, matches: "DataFrame") -> "DataFrame":
        """Matches with the name of the id that was asked for, and the columns of rules to keep."""
        if self._keep_rules:
            bad = bad_filters(self._subscriptions, self._settings)
            known = self._subscriptions.last_rows(
                self._keep_rules, bad if self.compiled.counts.bad else None
            )
            columns = [*matches.columns, *self._keep_rules]
            matches = matches.join(known, "subscription", "left").select(
                *(column_at((name,)) for name in columns)
            )
        return matches.withColumnRenamed("event_id", self.id_name)

    def duplicate_ids(self) -> int:
        """How many events have an id that an event before them has: a pass over the ids."""
        from pyspark.sql import functions as f

        ids = column_at((self._events.event_id,))
        row = self._events.frame.agg(f.count(ids), f.count_distinct(ids)).collect()[0]
        return int(row[0] - row[1])

    def notes(self) -> list[str]:
        """What to know about the events: columns that became text because of a few values."""
        try:
            counts, letters = self.compiled.counts, self.compiled.letters
        except SubscriptionError:  # no subscription can be used
            return self._events.notes(None)
        return self._events.notes(letters) if counts.bad else []

    def release(self) -> None:
        """Let the executors forget the compiled subscriptions; computed matches stay valid."""
        if "compiled" in self.__dict__ and isinstance(self.compiled, ShardedRules):
            self.compiled.release()

    @property
    def dead_letters(self) -> "DataFrame":
        """The rows that cannot be used: source, row, id, reason, line, column, value."""
        return bad_filters(self._subscriptions, self._settings).unionByName(self.bad_events())

    def bad_events(self) -> "DataFrame":
        """The events that cannot be used."""
        try:
            attributes = self._attributes
        except SubscriptionError:  # no subscription can be used, as their letters say
            attributes = set(self._settings.schema)
        return bad_events(self._events, self._settings, attributes)

    @property
    def semantics(self) -> str:
        """The name of the semantics."""
        return self._settings.semantics

    @property
    def is_sharded(self) -> bool:
        """Whether the subscriptions are divided into shards."""
        return self._reason[0]

    def explain(self) -> str:
        """How many subscriptions there are, and how they are matched, as a text."""
        counts = self.compiled.counts
        is_sharded, why = self._reason
        lines = [
            f"subscriptions: {counts.rows:,} rows: {counts.good:,} usable, {counts.bad:,} bad",
            f"replaced by later rows of the same id: {counts.replaced:,}",
            f"{'in shards' if is_sharded else 'as a whole'}: {why}",
        ]
        if isinstance(self.compiled, ShardedRules):
            lines += self.compiled.explanation()
        else:
            size = self.compiled.path.stat().st_size
            lines.append(f"compiled: {size:,} bytes, one file on every executor")
        lines += [
            f"attributes read: {', '.join(sorted(self._attributes)) or 'none'}",
            f"semantics {self._settings.semantics}, output {self.output}",
        ]
        if not is_sharded:  # as the workers see it: they map the same file
            lines.append(str(Matcher.load(self._path).explain()))
        return "\n".join(map(visible_lines, lines))


def _warn_of_zone(events: "DataFrame") -> None:
    """Warn if Spark's own comparisons use another time zone than filters, which use UTC."""
    kinds = {field.dataType.typeName() for field in events.schema.fields}
    if not kinds & {"timestamp", "timestamp_ntz", "date"}:
        return
    zone = events.sparkSession.conf.get("spark.sql.session.timeZone")
    if zone not in {"UTC", "Etc/UTC", "Z", "GMT", "+00:00"}:
        logger.warning(
            "the time zone of the session is %s, but tamis reads dates and times without a zone as "
            "UTC; set spark.sql.session.timeZone to UTC so that both mean the same",
            zone,
        )


def _as_frame(subscriptions: Any, spark: "SparkSession") -> "DataFrame":
    """A table of subscriptions of any library, as a DataFrame."""
    if not hasattr(subscriptions, "mapInArrow"):
        table = as_table(subscriptions)
        if table is not None:
            return spark.createDataFrame(table)
    _check_frame("subscriptions", subscriptions)
    found: DataFrame = subscriptions
    return found


def _check_frame(what: str, frame: Any) -> None:
    # By a method, since classic Spark and Spark Connect have different classes.
    if not hasattr(frame, "mapInArrow"):
        kind = type(frame)
        library = kind.__module__.partition(".")[0]
        name = kind.__name__ if library == "builtins" else f"{library}'s {kind.__name__}"
        raise OptionError(
            f"{what} must be a Spark DataFrame, not {name}; spark.createDataFrame makes one of a "
            "table or of a list of rows"
        )
