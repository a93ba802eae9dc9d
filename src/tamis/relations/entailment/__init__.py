"""Whether one filter follows from another: what predicates ask, and what events can answer."""
