"""Predicates: what kind of test each is, which values make it true, and an index that evaluates it.

Canonical predicates of a normal form come in (`tamis.language.normal_form`). `classification` says
what each tests, `presence` which attributes it needs, `index` which predicates are true of an
event; `keys` and `event_batches` turn the values of events into numbers in the same order.
"""
