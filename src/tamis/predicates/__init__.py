"""Predicates: what kind of test each is, which values make it true, and an index that evaluates it.

Canonical predicates of a normal form come in (`tamis.language.normal_form`). `classification` says
what each tests, `presence` which attributes it requires, `value_sets` which values make it true,
and `boxes` what a conjunction says of each attribute; `implication` and `dependencies` say what
follows from what. `index` finds the predicates that are true of an event; `keys` and
`event_batches` turn the values of events into numbers in the same order.
"""
