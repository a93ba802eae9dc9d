"""Relations between filters: which covers which, and what several say together."""
