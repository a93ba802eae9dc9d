"""Files as tables, read without Spark: the columns, types and bad rows that Spark's readers find.

In: paths of .parquet .json .jsonl .csv .xml files. Out: a `FileTable`: a schema of Arrow, and
record batches in the order of the files, never more than a few at a time in memory.

`input_files` finds the files of a path, `text_types` infers types from texts, `text_values` reads
texts as values of a type, `record_columns` makes columns of records. A module for each format reads
it: `csv_files`, `json_files`, `xml_files`, `parquet_files`. `file_table` is the way in. Spark's
readers are the oracle of all of it (`tests/local_job/test_agreement.py`), which is why some rules
are odd. `unreadable_rows` says what is wrong with a row that could not be read, also on Spark.
"""
