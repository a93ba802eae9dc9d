import pyarrow as pa
import pytest

from tamis.broker.arrow_events import events_of_table
from tamis.errors import OptionError


def test_rows_are_events_unless_json_has_no_form_for_a_value():
    table = pa.table({"symbol": ["A", "B", None], "price": [1.5, float("nan"), 2.0]})
    events, refused = events_of_table(table)
    assert [(row, event.body) for row, event in events] == [
        (0, b'{"symbol":"A","price":1.5}'),
        (2, b'{"symbol":null,"price":2.0}'),
    ]
    assert [refusal.row for refusal in refused] == [1]


def test_what_is_not_a_table():
    with pytest.raises(OptionError, match="expected an Arrow table or a frame, got int"):
        events_of_table(5)
