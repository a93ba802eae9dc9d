"""Files of events and subscriptions as DataFrames, and folders that are complete or not there.

In: paths, patterns, addresses and names of tables. Out: DataFrames; and, for results, folders.

All of it runs on the driver. `readers` reads by Spark's own readers, `json_documents` finds out
which kind of JSON a file has, `schema_drift` merges the schemas of Parquet files. `folders` is a
folder of small files wherever it is, and `atomic_folders` writes a folder aside and renames it.
"""
