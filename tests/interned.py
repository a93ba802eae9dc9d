"""Filters as the sliced engine compiles them, from their texts."""

from stocks import SMALL
from tamis import ExpressionError, parse
from tamis.engines.sliced.interning import intern_filters
from tamis.engines.sliced.leaves import leaves_of
from tamis.predicates.keys import Keys
from tamis.semantics import Semantics


def leaves(texts, schema=SMALL, first=0, step=1):
    """Filters with a handle, without those that are always or never true."""
    meaning, found = Semantics("sql", schema), []
    for number, text in enumerate(texts):
        try:
            one = leaves_of(parse(text, schema), meaning)
        except ExpressionError:
            continue
        if one.codes:
            found.append((first + step * number, one))
    return found


def interned(texts, schema=SMALL, first=0, step=1):
    """The filters together; None if all are always or never true."""
    found = leaves(texts, schema, first, step)
    return intern_filters(found, Keys(schema)) if found else None


def predicates_of(texts, schema=SMALL):
    """The predicates of the filters."""
    made = interned(texts, schema)
    return None if made is None else made.predicates
