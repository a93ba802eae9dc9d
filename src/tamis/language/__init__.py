"""The language of filters: the boolean part of SQL, read, checked, printed and evaluated."""
