"""Hot loops, compiled by numba: plain functions over typed arrays.

Legend of the dimensions, used in every kernel:

* p predicates, by their ids; s the satisfied ones of an event
* c conjunctions, by their slots
"""
