"""All rehearsals by name: together they call the kernels, so that these are compiled."""

from collections.abc import Callable

from tamis.compaction import compact
from tamis.engines.rehearsal import FILTERS, SCHEMA, events, rehearse_matching, rehearse_papers
from tamis.language.expression import parse
from tamis.matcher import OUTPUTS, Matcher
from tamis.relations.tables.cover_tables import CoverTable
from tamis.semantics import Semantics


def rehearse_relations() -> None:
    """Call the kernels of tables that know which filter covers which, and of compacted tables."""
    for search in ("one-pass", "two-pass"):
        table: CoverTable[int] = CoverTable(Semantics("sql", SCHEMA), search)
        for number, text in enumerate(FILTERS):
            table.insert(number, parse(text, SCHEMA))
        table.remove(0)
    compacted = compact(dict(enumerate(FILTERS)), SCHEMA)
    matcher = Matcher(SCHEMA)
    matcher.subscribe_many(compacted.subscriptions)
    for output in OUTPUTS:
        compacted.restore(matcher.match_batch(events()), events(), output)


REHEARSALS: dict[str, Callable[[], None]] = {
    "matching": rehearse_matching,
    "papers": rehearse_papers,
    "relations": rehearse_relations,
}
