"""Predicates: the atoms of filters, each distinct one kept and evaluated once."""
