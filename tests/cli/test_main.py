import json
import subprocess
import sys

import pytest

import tamis
from tamis.cli import main
from tamis.cli.main import build_parser
from tamis.spark.batch import output_folder


def test_without_a_command_the_help_is_shown_as_misuse(capsys):
    assert main([]) == 2
    assert "COMMAND" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["nope"],
        ["demo", "extra"],
        ["match"],
        ["match", "s.csv", "e.csv"],
        ["match", "s.csv", "e.csv", "--out", "o", "--output", "pear"],
        ["match", "s.csv", "e.csv", "--out", "o", "--engine", "steam"],
        ["match", "s.csv", "e.csv", "--out", "o", "--semantics", "none"],
        ["match", "s.csv", "e.csv", "--out", "o", "--on-bad", "cry"],
        ["match", "s.csv", "e.csv", "--out", "o", "--duplicates", "cry"],
        ["match", "s.csv", "e.csv", "--out", "o", "--shards", "0"],
        ["match", "s.csv", "e.csv", "--out", "o", "--budget", "lots"],
        ["match", "s.csv", "e.csv", "--out", "o", "--conf", "spark.x"],
        ["match", "s.csv", "e.csv", "--out", "o", "--format", "csv", "--output", "lists"],
        ["stream", "c", "e"],
        ["stream", "c", "e", "--out", "o", "--once", "--every", "1 second"],
        ["stream", "c", "e", "--out", "o", "--max-files", "0"],
        ["stream", "c", "e", "--out", "o", "--max-files", "1", "--max-bytes", "1m"],
        ["stream", "c", "e", "--out", "o", "--max-bytes", "lots"],
        ["stream", "c", "e", "--out", "o", "--format", "csv", "--output", "lists"],
        ["profile"],
        ["profile", "e.csv", "--top", "0"],
        ["explain"],
        ["explain", "TRUE", "--semantics", "none"],
        ["demo", "--events", "0"],
        ["demo", "--events", "-5"],
        ["demo", "--seed", "x"],
    ],
)
def test_misuse_ends_with_2_and_says_how(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("usage: tamis")


@pytest.mark.parametrize(
    "arguments",
    [["--help"], *([name, "-h"] for name in ("demo", "match", "stream", "profile", "explain"))],
)
def test_help(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("usage: tamis")


def test_micro_batches_are_bounded_by_files_or_by_a_size():
    arguments = ["stream", "c", "e", "--out", "o"]
    sized = build_parser("stream").parse_args([*arguments, "--max-bytes", "64m"])
    assert (sized.max_files, sized.max_bytes) == (None, 64 * 2**20)
    counted = build_parser("stream").parse_args([*arguments, "--max-files", "3"])
    assert (counted.max_files, counted.max_bytes) == (3, None)


def test_the_help_tells_how_a_schema_is_written_and_the_exit_codes(capsys):
    main([])
    text = capsys.readouterr().out
    assert "int(LOW, HIGH) and enum('A', 'B')" in text
    assert "exit codes: 0 done, 1 failed, 2 misuse (nothing was done), 130 interrupted" in text


def test_errors_are_json_as_well_if_json_was_asked_for(capsys):
    assert main(["match", "no.csv", "no.csv", "--out", "o", "--local", "--json"]) == 1
    output = capsys.readouterr()
    found = json.loads(output.out)
    assert found["command"] == "match"
    assert found["error"]["kind"] == "FileError"
    assert found["error"]["message"].endswith("/no.csv does not exist")
    assert output.err == f"tamis match: {found['error']['message']}\n"
    assert main(["explain", "price <", "--json"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["kind"], error["line"], error["column"]) == ("ParseError", 1, 8)
    with pytest.raises(SystemExit):
        main(["match", "--json"])
    output = capsys.readouterr()
    assert json.loads(output.out)["error"]["kind"] == "Misuse"
    assert output.err.startswith("usage: tamis match")


def test_version(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"tamis {tamis.__version__}\n"


def test_a_failure_ends_with_1_and_one_message(capsys):
    assert main(["explain", "price <"]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("tamis explain: the filter ends too early")
    assert "Traceback" not in output.err


def test_an_interruption_prints_no_traceback(monkeypatch, capsys, tmp_path):
    def interrupt(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(output_folder, "check_output", interrupt)
    assert main(["match", "s.csv", "e.csv", "--out", str(tmp_path / "o")]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_reader_that_goes_away_causes_no_traceback():
    with subprocess.Popen(
        [sys.executable, "-m", "tamis", "explain", "price < 10", "--schema", "price:double"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()
        errors = process.stderr.read()
    assert process.returncode == 1
    assert errors == b""
