import math
import re
from collections import ChainMap
from datetime import datetime
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis import EventError, OptionError, Schema
from tamis.events.event_reader import MAX_EVENT_DEPTH, MAX_EVENT_TEXT, EventReader

SCHEMA = Schema(
    {"company": "string", "price": "double", "level": "int(1, 5)", "address.city": "string",
     "address.geo.zip": "int", "at": "timestamp", "ok": "bool"}
)  # fmt: skip
READER = EventReader(SCHEMA)
STERN = EventReader(SCHEMA, "refuse")


def row(**values):
    """A row of SCHEMA with the values given by the last part of their names, others missing."""
    names = [attribute.path[-1] for attribute in SCHEMA.attributes]
    return tuple(values.get(name) for name in names)


# --- mappings


def test_a_row_is_in_the_order_of_the_schema():
    event = {"ok": True, "price": 5, "company": "IBM", "at": datetime(1970, 1, 1)}  # noqa: DTZ001 - Arrow has such times, too
    assert READER.row(event) == row(company="IBM", price=5.0, ok=True, at=0)


@each("event", [{}, {"price": None}, {"address": None}, {"address": {}}])
def test_what_is_absent_or_none_is_missing(event):
    assert READER.row(event) == row()


def test_nested_records():
    event = {"address": {"city": "Paris", "geo": {"zip": 75001}}}
    assert READER.row(event) == row(city="Paris", zip=75001)


@each("make", [dict, MappingProxyType, ChainMap])
def test_any_mapping_will_do(make):
    assert READER.row(make({"price": 1})) == row(price=1.0)


@each(
    ("event", "message"),
    [
        ({"price": "5"}, r"attribute price expects double, got '5' \(str\)"),
        ({"ok": 1}, r"attribute ok expects bool, got 1 \(int\)"),
        ({"level": True}, r"attribute level expects int\(1, 5\), got True \(bool\)"),
        ({"level": 6}, r"attribute level: 6 \(int\) lies outside the domain int\(1, 5\)"),
        ({"company": "\ud800"}, "not valid Unicode"),
        ({"address": "Paris"}, "attribute address expects a record, got str"),
        ({"address": [1]}, "attribute address expects a record, got list"),
        ({"address": {"geo": 5}}, r"attribute address\.geo expects a record, got int"),
        ({"address": {"city": 5}}, r"attribute address\.city expects string, got 5"),
        ({"company": {"name": "IBM"}}, r"attribute company expects string, got \{'name'"),
    ],
)
def test_values_that_do_not_fit_the_schema(event, message):
    with pytest.raises(EventError, match=message):
        READER.row(event)


@each("event", [None, 5, 1.5, [("price", 5)], {"price"}, object()])
def test_what_is_not_an_event(event):
    with pytest.raises(EventError, match=f"JSON or XML as text, not {type(event).__name__}"):
        READER.row(event)


def test_reading_does_not_change_the_event():
    event = {"address": {"city": "Paris"}, "unknown": [1]}
    READER.row(event)
    assert event == {"address": {"city": "Paris"}, "unknown": [1]}


# --- unknown attributes


@each("event", [{"prize": 5}, {"address": {"town": 1}}, {5: 6}, {"a": {"b": [object()]}}])
def test_unknown_attributes_are_ignored(event):
    assert READER.row(event) == row()


@each(
    ("event", "message"),
    [
        ({"prize": 5}, r"unknown attribute 'prize'; did you mean 'price'\?"),
        ({"address": {"cty": "x"}}, r"unknown attribute 'address\.cty'; did you mean 'address.ci"),
        ({"address.cit": "x"}, r"unknown attribute '`address\.cit`'; did you mean"),
        ({"zzz": None}, "unknown attribute 'zzz'; available: 'company', 'price'"),
        ({5: 6}, "unknown attribute '`5`'"),
    ],
)
def test_unknown_attributes_are_refused_on_demand(event, message):
    with pytest.raises(EventError, match=message):
        STERN.row(event)


def test_a_known_event_passes_when_unknown_ones_are_refused():
    assert STERN.row({"address": {"city": "Paris"}, "price": 1}) == row(city="Paris", price=1.0)


def test_an_unknown_treatment_of_unknown_attributes():
    with pytest.raises(OptionError, match="'refuze'; did you mean 'refuse'"):
        EventReader(SCHEMA, "refuze")


# --- JSON


@each(
    "text",
    [
        '{"price": 5, "address": {"city": "Paris"}}',
        b'{"price": 5, "address": {"city": "Paris"}}',
        ' \n{"price":5.0,"address":{"city":"Pa\\u0072is"},"ok":null}\t',
        '\ufeff{"price": 5, "address": {"city": "Paris"}}',
        b'\xef\xbb\xbf{"price": 5, "address": {"city": "Paris"}}',
    ],
)
def test_json_as_text_or_bytes(text):
    assert READER.row(text) == row(price=5.0, city="Paris")


@each(
    ("text", "message"),
    [
        ("", r"the event is not valid JSON: Expecting value \(line 1, column 1\)"),
        ("price = 5", "the event is not valid JSON"),
        ('{"price": 5', r"the event is not valid JSON: .* \(line 1, column 12\)"),
        (
            '{"price": 5}\n{"price": 6}',
            r"the event is not valid JSON: Extra data \(line 2, column 1\)",
        ),
        ("{'price': 5}", "the event is not valid JSON"),
        ('{"company": "a\nb"}', "the event is not valid JSON: Invalid control character"),
        ("[]", r"an event is a JSON object \{\.\.\.\}, not list"),
        ("5", "an event is a JSON object"),
        ("null", "an event is a JSON object"),
        ('"price"', "an event is a JSON object"),
        ('{"price": 5, "price": 6}', "the event names 'price' twice"),
        ('{"address": {"city": "a", "city": "a"}}', "the event names 'city' twice"),
        ('{"zzz": {"a": 1, "a": 1}}', "the event names 'a' twice"),
        ('{"company": "\\ud800"}', "attribute company expects string"),
        ('{"level": 1.0}', "attribute level expects"),
        ('{"level": NaN}', "attribute level expects"),
        ('{"price": "5"}', "attribute price expects double"),
        ('{"price": 1e999}', "the number 1e999 is too large for a double"),
        ('{"zzz": [-1e400]}', "the number -1e400 is too large for a double"),
        ('{"price": 1' + "0" * 400 + ".5}", r"the number 10+\.\.\. is too large"),
    ],
)
def test_json_that_cannot_be_read(text, message):
    with pytest.raises(EventError, match=message):
        READER.row(text)


@each(("text", "price"), [("Infinity", math.inf), ("-Infinity", -math.inf), ("1e-999", 0.0)])
def test_infinities_in_json_are_kept(text, price):
    assert READER.row(f'{{"price": {text}}}') == row(price=price)


def test_nan_in_json_is_kept():
    assert math.isnan(READER.row('{"price": NaN}')[1])


def test_bytes_that_are_not_utf8():
    with pytest.raises(EventError, match=r"not valid UTF-8: .* at byte 13"):
        READER.row(b'{"company": "\xff"}')


@each("text", ["[" * 100_000, '{"a":' * 100_000, '{"a":' * 9999 + "1" + "}" * 9999])
def test_json_of_bottomless_depth_is_refused(text):
    with pytest.raises(EventError, match="nested too deeply"):
        READER.row(text)


def test_a_number_of_thousands_of_digits_is_refused():
    with pytest.raises(EventError):
        READER.row(f'{{"price": {"9" * 10_000}}}')


def test_an_integer_of_json_beyond_64_bits():
    reader = EventReader(Schema({"n": "int"}))
    assert reader.row(f'{{"n": {2**63 - 1}}}') == (2**63 - 1,)
    with pytest.raises(EventError, match="does not fit in 64 bits"):
        reader.row(f'{{"n": {2**63}}}')


@pytest.mark.parametrize("text", ["{%s}", "<event>%s</event>"])
def test_giant_texts_are_refused(text):
    with pytest.raises(EventError, match=r"characters, the limit is 16,000,000"):
        READER.row(text % (" " * MAX_EVENT_TEXT))


@given(st.text(alphabet='{}[]"<>/:,\\&;!a1 ') | st.text() | st.binary())
def test_no_text_breaks_the_reader(text):
    try:
        result = READER.row(text)
    except EventError:
        return
    assert len(result) == len(SCHEMA)


# --- XML

PAPER = EventReader(Schema({"company": "string", "product": "string", "price": "int"}))
DOCUMENT = (
    "<company> IBM </company> <product> PC AT, 20 Mhz, 256 KB RAM </product> <price> 5000 </price>"
)
OFFER = ("IBM", "PC AT, 20 Mhz, 256 KB RAM", 5000)


@each(
    "text",
    [
        DOCUMENT,
        DOCUMENT.encode(),
        f"  \n{DOCUMENT}\n",
        f"<event>{DOCUMENT}</event>",
        f"<offer>\n  {DOCUMENT}\n</offer>",
        f"<?xml version='1.0' encoding='UTF-8'?>\n<offer>{DOCUMENT}</offer>",
        f'<?xml version="1.0"?>{DOCUMENT}',
        f"\ufeff<?xml version='1.0'?>{DOCUMENT}",
        f"<!-- an offer --><offer id='5'>{DOCUMENT}</offer>",
        f"<offer>{DOCUMENT}<unknown><a/></unknown></offer>",
    ],
)
def test_the_document_of_the_paper(text):
    assert PAPER.row(text) == OFFER


def test_a_partial_document_of_the_paper():
    assert PAPER.row("<company> IBM </company> <product> PC </product>") == ("IBM", "PC", None)


@pytest.mark.parametrize("text", ["<price>5</price>", "<offer><price>5</price></offer>"])
def test_a_document_of_one_element(text):
    assert PAPER.row(text) == (None, None, 5)


def test_nested_elements_are_records():
    text = "<e><address><city> Paris </city><geo><zip>75001</zip></geo></address><ok>true</ok></e>"
    assert READER.row(text) == row(city="Paris", zip=75001, ok=True)


def test_a_record_of_the_schema_is_not_taken_for_a_root():
    assert READER.row("<address><city>Paris</city></address>") == row(city="Paris")


def test_entities_of_xml_itself_and_cdata_are_read():
    text = "<company>A &amp; B &#233;</company><product><![CDATA[a < b]]></product>"
    assert PAPER.row(text) == ("A & B é", "a < b", None)


def test_an_empty_element_is_an_empty_string_or_missing():
    assert PAPER.row("<company/><price></price>") == ("", None, None)


@each(
    ("text", "message"),
    [
        ("<company>IBM", "the event is not valid XML"),
        ("<company>IBM</price>", "the event is not valid XML"),
        ("<", "the event is not valid XML"),
        ("<company>a & b</company>", "the event is not valid XML"),
        ("<company>&nbsp;</company>", "the event is not valid XML"),
        ("<company>\x00</company>", "the event is not valid XML"),
        ("<company>a</company></event><event><price>5</price>", "the event is not valid XML"),
        ("<company>a</company><company>b</company>", "the event names 'company' twice"),
        ("<e><price>1</price><price>1</price></e>", "the event names 'price' twice"),
        ("<price>cheap</price>", "attribute price expects int, got 'cheap'"),
        ("<price>5</price>junk", "the text 'junk' is in no element"),
        ("<!-- --> junk <price>5</price>", "the text 'junk' is in no element"),
        ("<e>junk<price>5</price></e>", "the text 'junk' is in no element"),
        ("<a><b>5</b>x</a><price>5</price>", "the text 'x' is in no element"),
        ("<price>5</price>" + "j" * 40, f"the text '{'j' * 40}' is in no element"),
        ("<price>5</price>" + "j" * 41, rf"the text '{'j' * 37}\.\.\.' is in no element"),
        ("<price>5.0</price>", "attribute price expects int, got '5.0'"),
        ("<company>a</company><price><net>5</net></price>", "attribute price expects int"),
    ],
)
def test_xml_that_cannot_be_read(text, message):
    with pytest.raises(EventError, match=message):
        PAPER.row(text)


BOMB = "<!DOCTYPE b [<!ENTITY a '{}'><!ENTITY b '{}'>]>".format("x" * 10, "&a;" * 10)


@each(
    "head",
    [
        BOMB,
        f"<?xml version='1.0'?>{BOMB}",
        "<!DOCTYPE company>",
        "<!DOCTYPE c SYSTEM 'http://example.org/c.dtd'>",
        "<!DOCTYPE c [<!ENTITY b SYSTEM 'file:///etc/passwd'>]>",
    ],
)
def test_declarations_of_entities_and_dtds_are_refused(head):
    with pytest.raises(EventError):
        PAPER.row(f"{head}<company>&b;</company>")
    with pytest.raises(EventError):
        PAPER.row(f"{head}<company>IBM</company>")


@pytest.mark.parametrize("depth", [MAX_EVENT_DEPTH + 5, 10_000])
def test_xml_of_great_depth_is_refused(depth):
    with pytest.raises(EventError, match=f"nested more than {MAX_EVENT_DEPTH} records"):
        PAPER.row("<a>" * depth + "</a>" * depth)


def test_unknown_elements_are_refused_on_demand():
    with pytest.raises(EventError, match=r"unknown attribute 'prize'; did you mean 'price'\?"):
        STERN.row("<offer><prize>5</prize></offer>")


# --- texts, as in CSV


def test_texts_are_converted_and_only_strings_can_be_empty():
    record = {"company": "", "price": "5", "level": "", "ok": "true", "at": "1970-01-01"}
    assert READER.row_of_texts(record) == row(company="", price=5.0, ok=True, at=0)


@each(
    "event",
    [{"address.city": "Paris", "address": {"city": "Rome"}},
     '{"address": {"city": "Rome"}, "address.city": "Rome"}'],
)  # fmt: skip
def test_a_path_and_its_flat_name_exclude_each_other(event):
    with pytest.raises(EventError, match=r"has address\.city twice: in the record address and"):
        READER.row(event)


@each("nothing", [{}, {"city": None}, None])
def test_a_path_without_a_value_leaves_the_flat_name(nothing):
    found = READER.row({"address.city": "Paris", "address": nothing})
    assert found == READER.row({"address.city": "Paris"}) == row(city="Paris")
    assert READER.row({"address.city": None, "address": {"city": "Paris"}}) == found


def test_a_path_may_be_a_flat_name():
    assert READER.row({"address.city": "Paris"}) == READER.row({"address": {"city": "Paris"}})
    reader = EventReader(SCHEMA, unknown="refuse")
    assert reader.row({"address.city": "Paris"}) == READER.row({"address": {"city": "Paris"}})


@each(
    "event",
    [{"price": 10**5000}, {"level": 10**5000}, "<company>\ud800</company>"],
)
def test_values_that_cannot_even_be_shown(event):
    with pytest.raises(EventError):
        READER.row(event)


def test_a_dtd_is_named():
    with pytest.raises(EventError, match="declares a DTD"):
        READER.row("<!DOCTYPE a [<!ENTITY x 'y'>]><company>&x;</company>")


def test_the_place_of_an_error_in_xml():
    with pytest.raises(EventError, match=r"mismatched tag \(line 1, column 13\)"):
        READER.row("<company>a</price>")


def test_many_keys_and_one_twice():
    keys = ", ".join(f'"k{n}": 1' for n in range(100_000))
    with pytest.raises(EventError, match="names 'k5' twice"):
        READER.row("{" + keys + ', "k5": 1}')


def test_texts_that_do_not_fit():
    with pytest.raises(EventError, match="attribute level: 9"):
        READER.row_of_texts({"level": "9"})


LISTS = EventReader(
    Schema(
        {
            "tags": "array<string>", "ns": "array<int>", "props": "map<string, double>",
            "item._id": "int", "item._VALUE": "string", "price": "double",
        }
    )
)  # fmt: skip


@each(
    ("text", "row"),
    [
        ("<tags>a</tags><tags>b</tags>", (("a", "b"), None, None, None, None, None)),
        ("<tags>a</tags>", (("a",), None, None, None, None, None)),
        ("<e><ns>1</ns><x/><ns/><tags/></e>", (("",), (1, None), None, None, None, None)),
        ("<tags lang='de'>a</tags><tags>b</tags>", (("a", "b"), None, None, None, None, None)),
        ("<item id=' 5'>z</item>", (None, None, None, 5, "z", None)),
        ("<item>z</item>", (None, None, None, None, "z", None)),
        ("<item id='5'/>", (None, None, None, 5, None, None)),
        ("<price currency='EUR'>5</price>", (None, None, None, None, None, 5.0)),
        ("<other>1</other><other>2</other>", (None,) * 6),
    ],
)
def test_repeated_elements_and_attributes_of_xml(text, row):
    assert LISTS.row(text) == row


def test_elements_of_an_element_are_a_map():
    row = LISTS.row("<props><a>1.5</a><b/></props>")
    assert row[2] == {"a": 1.5, "b": None}


@each(
    ("event", "complaint"),
    [
        ({"tags": "a"}, "expects array<string>, got 'a' (str): write a list"),
        ({"tags": {"a"}}, "write a list"),
        ({"tags": ["a", 5]}, "element 1 is 5 (int)"),
        ({"ns": [2**63]}, "element 0 is 9223372036854775808 (int): it does not fit in 64 bits"),
        ({"props": ["a"]}, "expects map<string, double>, got ['a'] (list): write a dict"),
        ({"props": {1: 2.0}}, "expects map<string, double>"),
        ({"props": {"a": "x"}}, "element 'a' (str) is 'x' (str)"),
        ({"props": [("a", 1.0), ("a", 2.0)]}, "it has the key 'a' (str) twice"),
    ],
)
def test_arrays_and_maps_that_do_not_fit(event, complaint):
    with pytest.raises(EventError, match=re.escape(complaint)):
        LISTS.row(event)


def test_arrays_and_maps_of_dicts():
    event = {"tags": ("a", None), "ns": np.array([1, 2]), "props": {"a": 1, "b": None}}
    row = LISTS.row(event)
    assert row[:3] == (("a", None), (1, 2), {"a": 1.0, "b": None})
    assert hash(row) == hash(LISTS.row(dict(event)))
