"""What `routing.py` measures: tables of subscriptions, and brokers that hold them."""
