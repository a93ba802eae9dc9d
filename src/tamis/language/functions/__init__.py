"""The functions and operators of filters: one entry each, with types, meaning and kernel."""
