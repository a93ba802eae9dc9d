"""Brokers that are linked: filters travel towards publishers, events towards subscribers."""
