"""The broker: clients publish events to topics, subscribe with filters, and are notified."""
