"""Relations between filters: which covers which, and which filter merges several."""
