"""What `pipeline.py` measures, in processes that each have a Spark session."""
