"""`LocalJob`: events of files with subscriptions of files, matched in this process."""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.dead_letters import BAD_ROW_TREATMENTS, SHOWN, BadLimit, DeadLetter, listing
from tamis.errors import OptionError, SubscriptionError, choose
from tamis.events.values import moment_of_call
from tamis.file_tables.file_table import FileTable
from tamis.given_events import kept_names
from tamis.local_job.event_columns import EventColumns, with_types
from tamis.local_job.kept_subscription_columns import KeptSubscriptionColumns
from tamis.local_job.match_files import MatchFiles
from tamis.local_job.repeated_ids import RepeatedIds
from tamis.local_job.subscription_rows import SubscriptionRows
from tamis.matcher import OUTPUTS, Matcher
from tamis.matcher_settings import MatcherSettings
from tamis.schema import Schema, as_schema
from tamis.spark.batch.match_counts import MatchCounts
from tamis.spark.batch.output_folder import MatchSummary, check_output
from tamis.spark.batch.worker import BAD, MatchTask
from tamis.spark.compile.last_rows import RowsReport, read_last_rows
from tamis.spark.compile.task_reports import check_rows
from tamis.spark.compile.worker import MatcherStore
from tamis.spark.dead_letters.worker import EventCheckTask, FilterCheckTask
from tamis.spark.files.atomic_folders import DEAD_LETTERS, MATCHES, whole_folder, write_summary
from tamis.spark.files.folders import Folder
from tamis.spark.tables.event_table import attributes_to_read
from tamis.spark.tables.match_schema import FOUND, arrow_type, check_match_names
from tamis.spark.tables.subscription_table import DUPLICATES

logger = logging.getLogger("tamis")

Watch = Callable[[pa.Array], None]  # gets the ids of events as they are read


class LocalJob:
    """The matching of events with subscriptions, both given as paths of files, in this process.

    The settings are those of `tamis.spark.MatchJob`, and mean the same; there are no shards. If
    `event_id` is None, the events are identified by their column ``id``, and if there is none, they
    are numbered from 0 in the order of the files.
    """

    def __init__(  # noqa: PLR0913 - all but two by name
        self, events: str | Path, subscriptions: str | Path, *, event_id: str | None = None,
        semantics: str = "sql", output: str = "pairs", keep: Sequence[str] = (),
        schema: Schema | Mapping[str, str] | None = None,
        defaults: Mapping[str, Any] | None = None, duplicates: str = "last",
        order: str | None = None, on_bad: str = "keep", profile: Any = None,
        keep_rules: Sequence[str] = (), keep_id_name: bool = False, now: Any = None,
    ) -> None:  # fmt: skip
        self.output = choose("output", output, OUTPUTS)
        self._on_bad = choose("treatment of bad rows", on_bad, BAD_ROW_TREATMENTS)
        self._duplicates = choose("treatment of duplicates", duplicates, DUPLICATES)
        given = None if schema is None else as_schema(schema)
        typed = None if given is None else lambda found, _: with_types(found, given)
        table = FileTable(events, row_tag="event", typed=typed, is_inferred=given is None)
        if event_id is None and "id" in table.schema.names:
            event_id = "id"
        self._events = EventColumns(table, event_id, given, keep, moment_of_call(now))
        files = table.files
        logger.info(
            "events: %s files of %s: %s", len(files.files), files.format, self._events.schema
        )
        self._is_numbered = event_id is None
        self.id_name = event_id if keep_id_name and event_id is not None else "event_id"
        self._keep_rules = kept_names(keep_rules)
        check_match_names(self.id_name, output, self._events.keep, self._keep_rules)
        self._subscriptions = SubscriptionRows(subscriptions, order, self._keep_rules)
        self._settings = MatcherSettings(
            self._events.schema, semantics, defaults, self._events.skipped, profile
        )

    @cached_property
    def _compiled(self) -> tuple[Matcher, RowsReport]:
        matcher = self._settings.matcher()
        store = MatcherStore(self._settings, matcher)
        report = read_last_rows(self._subscriptions.batches(), self._duplicates, store)
        logger.info("compiled %s of %s subscriptions", report.counts.good, report.counts.rows)
        check_rows(report.counts, report.letters, report.repeated, len(report.repeated))
        if report.counts.bad and self._on_bad == "fail":
            raise OptionError(f"subscriptions: {listing(report.letters, report.counts.bad)}")
        return matcher, report

    @cached_property
    def _kept_columns(self) -> KeptSubscriptionColumns:
        bad: set[int] = set()
        if self._compiled[1].counts.bad:
            for batch in FilterCheckTask(self._settings)(self._subscriptions.batches()):
                bad.update(batch.column("row").to_pylist())
        return KeptSubscriptionColumns(self._subscriptions.rows(), self._keep_rules, bad)

    @cached_property
    def _attributes(self) -> set[str]:
        """The attributes that are read."""
        of = self._settings
        return attributes_to_read(of.schema, self._compiled[0].attributes(), of.semantics)

    def matches(self) -> Iterator[pa.RecordBatch]:
        """The matches, as Spark would have them."""
        return (batch for batch, _ in self._tagged() if batch is not None)

    def _tagged(self, watch: Watch | None = None) -> Iterator[tuple[pa.RecordBatch | None, int]]:
        """Batches of matches; or None, and how many events could not be used."""
        matcher, _ = self._compiled
        task = MatchTask(
            lambda: matcher, self._events.layout(self._attributes), self.output, self._on_bad,
            tag=self._subscriptions.id_type,
        )  # fmt: skip
        schema = self.schema
        events = self._events.batches(self._attributes)
        for batch in task(events if watch is None else _watched(events, watch)):
            is_bad = batch.num_rows > 0 and batch.column(BAD)[0].as_py()
            if is_bad:
                yield None, batch.num_rows
                continue
            columns = batch.columns[: batch.num_columns - 1]  # the last one is the tag
            if self._keep_rules:
                columns += self._kept_columns.of(columns[1])
            yield pa.RecordBatch.from_arrays(columns, schema=schema), 0

    @property
    def schema(self) -> pa.Schema:
        """The columns of the matches."""
        found = arrow_type(self.output, self._subscriptions.id_type)
        return pa.schema(
            [
                (self.id_name, self._events.id_type), (FOUND[self.output], found),
                *self._events.kept_fields(), *self._subscriptions.kept_fields(),
            ]
        )  # fmt: skip

    def dead_letters(self) -> Iterator[pa.RecordBatch]:
        """The rows that cannot be used: those of the subscriptions, then those of the events."""
        yield from FilterCheckTask(self._settings)(self._subscriptions.batches())
        names = self._attributes
        layout = self._events.layout(names)._replace(kept=("row",))
        yield from EventCheckTask(self._settings, layout)(self._events.numbered(names))

    def write(
        self, out: str, format: str = "parquet", *, overwrite: bool = False,
        max_bad: BadLimit | str | int | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> MatchSummary:  # fmt: skip
        """Match, and write the folder: all of it or, on a local file system, nothing.

        `max_bad` is that of `tamis.spark.batch.output_folder.write_job`; `progress` is called with
        the number of events that were read since the last call.
        """
        limit = BadLimit.of(max_bad)
        check_output(out, overwrite=overwrite)
        with whole_folder(out) as place:
            try:
                report = self._compiled[1]
            except SubscriptionError as error:
                raise SubscriptionError(
                    "\n".join([str(error), *self._events.notes(None)])
                ) from None
            rows = report.counts
            if limit is not None:
                limit.check("subscriptions", rows.bad, rows.rows, report.letters)
            repeated = RepeatedIds()
            logger.info("matching events, attributes read: %s", ", ".join(sorted(self._attributes)))

            def watch(ids: pa.Array) -> None:
                if not self._is_numbered:
                    repeated.add(ids)
                if progress is not None:
                    progress(len(ids))

            counts = self._write_matches(Folder(f"{place}/{MATCHES}"), format, watch)
            logger.info("wrote %s matches of %s events", counts.matches, counts.events)
            letters: list[DeadLetter] = []
            if rows.bad or counts.bad:
                letters = _write_letters(self.dead_letters(), Folder(f"{place}/{DEAD_LETTERS}"))
            if limit is not None:
                some = [letter for letter in letters if letter.source == "events"]
                limit.check("events", counts.bad, counts.events, some)
            summary = MatchSummary(
                subscriptions=rows.good, events=counts.events, matches=counts.matches,
                bad_subscriptions=rows.bad, bad_events=counts.bad, replaced=rows.replaced,
                duplicate_ids=repeated.count(),
                semantics=self._settings.semantics, output=self.output, mode="whole",
                ran_on="local", out=out, letters=tuple(letters),
                notes=tuple(self._events.notes(report.letters) if rows.bad else ()),
            )  # fmt: skip
            write_summary(place, json.dumps(summary.to_dict(), indent=2) + "\n")
            return summary

    def _write_matches(self, folder: Folder, format: str, watch: Watch) -> MatchCounts:
        matches = bad = 0
        folder.make()
        files = MatchFiles(folder, self.schema, format)
        for batch, unusable in self._tagged(watch):
            bad += unusable
            if batch is not None:
                files.write(batch)
                matches += _matches_in(batch, self.output)
        files.close()
        return MatchCounts(self._events.seen, matches, bad)


def _watched(events: Iterator[pa.RecordBatch], watch: Watch) -> Iterator[pa.RecordBatch]:
    for batch in events:
        watch(batch.column(0))
        yield batch


def _matches_in(batch: pa.RecordBatch, output: str) -> int:
    if output == "pairs":
        return int(batch.num_rows)
    column = batch.column(1)
    counts = column if output == "counts" else pc.list_value_length(column)
    return int(pc.sum(counts).as_py() or 0)


def _write_letters(batches: Iterable[pa.RecordBatch], folder: Folder) -> list[DeadLetter]:
    """Write all letters; returns the first ones."""
    first: list[DeadLetter] = []
    files: MatchFiles | None = None
    folder.make()
    for batch in batches:
        files = files or MatchFiles(folder, batch.schema, "json")
        files.write(batch)
        if len(first) < SHOWN:
            first += [DeadLetter(**row) for row in batch.slice(0, SHOWN - len(first)).to_pylist()]
    if files is not None:
        files.close()
    return first
