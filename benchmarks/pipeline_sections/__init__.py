"""The sections of `pipeline.py`, which run in processes that each have a Spark session."""
