"""Random filters whose truth is compared with what Spark says: more of them than in the suite.

``python tests/spark_differences.py arrays --filters 2000 --events 60 --seed 7`` draws filters of
one kind (`plain`, `arrays` or `decimals`) and events, and asks Spark, the definition of the
language and a matcher. True, false and null must all agree.
"""

import argparse

import array_cases
import decimal_cases
import plain_cases
from spark_answers import Events, differences, settings_of_filters
from tamis.engines import ENGINES

KINDS = {"plain": plain_cases, "arrays": array_cases, "decimals": decimal_cases}


def main() -> None:
    """Compare as many filters and events as the options say."""
    from tamis.spark import spark_session

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--engine", choices=ENGINES, default="sliced")
    for name, usual in (("filters", 1000), ("events", 60), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    options = parser.parse_args()
    texts, events = KINDS[options.kind].drawn(options.filters, options.events, options.seed)
    spark = spark_session()
    with settings_of_filters(spark, is_interpreted=options.kind != "arrays"):
        frame = spark.createDataFrame(events.table).coalesce(1).cache()
        found = list(differences(frame, events, texts, options.engine))
    for one in sorted(found, key=lambda each: len(each.filter)):
        print(*one, sep="\n  ")  # noqa: T201 - a program
    print(summary(texts, events), len(found), "differ")  # noqa: T201 - as above


def summary(texts: list[str], events: Events) -> str:
    """How much was compared."""
    pairs = len(texts) * len(events.rows)
    return f"{len(texts):,} filters, {len(events.rows)} events, {pairs:,} pairs,"


if __name__ == "__main__":
    main()
