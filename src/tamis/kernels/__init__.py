"""Hot loops, compiled by numba: plain functions over typed arrays.

In: arrays that engines have laid out, and the values of one event or of a block of events. Out:
arrays of slots, the small numbers under which engines hold filters or conjunctions.

Four groups of modules follow a paper each, and carry its names:

* `comparisons`, `counting`: predicate indexes and the counting algorithm (COUNT)
* `growing_tree`, `static_tree`, `tree_*`: the matching tree and its optimizations (TREE)
* `bdd_*`: shared binary decision diagrams, EvalBDD and MVEvalBDD (BDD)
* `mbd_*`: modified binary decision diagrams, matching and covering (MBD)

The engine `sliced` is ours. In the order in which events meet them, its modules are `term_steps`
(whose operations are in `term_arithmetic` and `term_operations`), `text_facts`, `value_classes`,
`predicate_rows`, `programs` for conjunctions and `formula_steps` for all other formulas, and
`match_bits`. A single event takes `event_truth` and `one_event` instead of the rows. `simd_rows`
and `bits` are for all of them.

The comments of an array give its type and its dimensions, as in ``int32[slot, word]``. An asterisk
is a dimension that nothing else shares.
"""
