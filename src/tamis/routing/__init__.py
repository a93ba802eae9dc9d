"""Brokers that route events to subscribers, as pure logic: messages in, messages out."""
