"""The broker over HTTP: `operations.py` is the table of all that it answers."""
