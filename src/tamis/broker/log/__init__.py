"""The log of a topic; `topic_log` is the door."""
