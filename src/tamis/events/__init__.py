"""Events as they come in, and as engines take them.

In: mappings, JSON and XML texts, Arrow tables and what converts to them, files. Out: rows of
checked values in the order of a schema, or checked columns; and, for what is not an event, the
reason.
"""
