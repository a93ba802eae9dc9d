"""A program with a Spark session that runs what it is sent.

Usage: python session_process.py CONF, where CONF is a JSON object of Spark's settings. Each line of
the standard input is a JSON object: `code`, a program with a function ``main(spark, given)``, and
what is `given` to it. What main returns is printed as JSON, in one line, or why it failed.
"""

import json
import sys
import traceback

from tamis.spark import spark_session

if __name__ == "__main__":
    spark = spark_session(conf=json.loads(sys.argv[1]))
    for line in sys.stdin:
        request = json.loads(line)
        # Workers get what is defined in __main__ with the task: they cannot import this program.
        program = {"__name__": "__main__"}
        try:
            exec(compile(request["code"], "the program", "exec"), program)  # noqa: S102 - the tests'
            answer = "said " + json.dumps(program["main"](spark, request["given"]))
        except Exception:  # noqa: BLE001 - whatever it is, the next program may do better
            answer = "failed " + json.dumps(traceback.format_exc())
        print(answer, flush=True)  # noqa: T201 - the answer
    spark.stop()
