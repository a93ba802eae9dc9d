"""The sections of `routing.py`: tables of subscriptions, and networks of brokers."""
