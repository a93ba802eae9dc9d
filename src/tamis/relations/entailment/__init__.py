"""Whether one normal form follows from another, decided by the values that predicates allow."""
