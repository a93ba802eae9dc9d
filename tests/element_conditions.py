"""Terms of exists and forall for many events and for each alone, against what they mean."""

from array_strategies import ARRAYS
from tamis.language.evaluation import compile_value
from tamis.predicates.event_batches import batch_of_rows
from tamis.predicates.term_columns import TermColumns


def check_conditions(parts, terms, events):
    """The parts compute all terms, twice the same, and some are true, some false and some null."""
    assert sorted(n for part in parts for n in part.numbers.tolist()) == list(range(len(terms)))
    columns = TermColumns(batch_of_rows(events, ARRAYS))
    computes = [compile_value(term, ARRAYS) for term in terms]
    answers = set()
    for part in parts:
        alone = [part.of_row(event) for event in events]
        for keys, present in (part.of_batch(columns), part.of_batch(columns)):
            for place, number in enumerate(part.numbers.tolist()):
                truths = [computes[number](event) for event in events]
                answers.update(truths)
                wanted = [(int(truth or 0), int(truth is not None)) for truth in truths]
                found = list(zip(keys[place], present[place], strict=True))
                assert found == wanted, str(terms[number])
                assert [(k[place], p[place]) for k, p in alone] == wanted, str(terms[number])
    assert answers == {True, False, None}
