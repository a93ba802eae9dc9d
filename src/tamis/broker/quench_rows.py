"""What the catalogue keeps of quenching: the topics of which publishers may be dropping events.

A broker that starts again does not know these publishers. It waits until none of them can drop any
more before it tells a subscriber that it gets everything.
"""

from tamis.broker.catalogue_change import CatalogueChange
from tamis.broker.peer_rows import RowSource

TABLES = """
CREATE TABLE IF NOT EXISTS quenched (topic TEXT PRIMARY KEY, lease REAL NOT NULL) WITHOUT ROWID;
"""


def quenched(tables: RowSource) -> dict[str, float]:
    """The names of topics, each with the seconds for which a publisher may drop."""
    return dict(tables.rows("SELECT topic, lease FROM quenched"))


def local_filters(tables: RowSource, topic: int) -> list[tuple[str, str]]:
    """The different filters of durable subscriptions, each with its account."""
    found = tables.rows("SELECT DISTINCT account, filter FROM subscriptions WHERE topic = ?", topic)
    return [(account, text) for account, text in found]


def put_quenched(topic: str, lease: float) -> CatalogueChange:
    """Remember that publishers may drop events of a topic."""
    return CatalogueChange("INSERT OR REPLACE INTO quenched VALUES (?, ?)", (topic, lease))


def drop_quenched(topic: str) -> CatalogueChange:
    """Forget that publishers may drop events of a topic."""
    return CatalogueChange("DELETE FROM quenched WHERE topic = ?", (topic,))
