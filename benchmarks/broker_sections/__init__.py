"""The sections of `broker.py`: brokers and load generators as processes, and what they measure."""
