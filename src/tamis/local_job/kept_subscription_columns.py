"""Columns of subscriptions that pairs of matches have as well."""

from collections.abc import Collection, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class KeptSubscriptionColumns:
    """For each id, some columns of the row that counts: the last one that can be used.

    `batches` has the columns id, row and the kept ones, in the order that counts; `bad` are the
    positions of rows that cannot be used.
    """

    def __init__(
        self, batches: Iterable[pa.RecordBatch], names: Sequence[str], bad: Collection[int]
    ) -> None:
        table = pa.Table.from_batches(list(batches))
        if bad:
            refused = pc.is_in(table["row"], value_set=pa.array(sorted(bad), pa.int64()))
            table = table.filter(pc.invert(refused))
        codes = table["id"].combine_chunks().dictionary_encode()
        last = np.empty(len(codes.dictionary), np.int64)
        last[np.asarray(codes.indices)] = np.arange(table.num_rows)  # the last one stays
        self._ids = codes.dictionary
        self._columns = (
            table.select([f"kept {name}" for name in names]).take(pa.array(last)).combine_chunks()
        )

    def of(self, subscriptions: pa.Array) -> list[pa.Array]:
        """The kept columns of matches with these subscriptions."""
        places = pc.index_in(subscriptions, value_set=self._ids)
        return [column.combine_chunks().take(places) for column in self._columns.columns]
