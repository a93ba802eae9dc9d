"""Binary decision diagrams: building, restricting, grouping into MBDs, and drawing them.

In: filters as programs over variables, one variable per distinct predicate. Out: the filters whose
function is true for an assignment, and pictures. The engines `bdd` and `mbd` use them.
"""
