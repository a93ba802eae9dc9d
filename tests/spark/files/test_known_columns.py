"""Columns that not every file of a stream has."""

from pyspark.sql.types import ArrayType, LongType, StructType

from tamis.spark.files.known_columns import with_known

LIST = ArrayType(LongType())


def columns(**kinds):
    made = StructType()
    for name, kind in kinds.items():
        made.add(name, kind)
    return made


def test_known_columns_are_added_and_give_text_its_types():
    found = columns(a="long", r=columns(x="long", z="string"), l=LIST)
    known = columns(a="double", r=columns(x="string", y="long"), l="string", b="date")
    text = columns(x="string", z="string", y="long")
    typed = columns(x="long", z="string", y="long")
    for file_format, wanted in [
        ("json", columns(a="double", r=text, l=LIST, b="date")),
        ("parquet", columns(a="long", r=typed, l=LIST, b="date")),
        ("csv", columns(a="double", r=text, l=LIST)),
    ]:
        assert with_known(found, known, file_format) == wanted, file_format
