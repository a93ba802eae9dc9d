"""The user's settings, and tamis' own where the user said nothing."""

import sys
from pathlib import Path

import pytest

from cases import each
from tamis.spark.session import settings


@pytest.fixture
def conf_folder(tmp_path, monkeypatch):
    for name in ("PYSPARK_SUBMIT_ARGS", "MASTER", "LOG4J_CONFIGURATION_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    return tmp_path


DEFAULTS = r"""
# spark.master yarn
spark.master            spark://host:7077
spark.app.name=of the file
spark.driver.memory : 3g
spark.jars.packages a:b:1,\
    c:d:2
! spark.log.level INFO
"""


def test_the_defaults_file_is_read_as_spark_reads_it(conf_folder):
    (conf_folder / "spark-defaults.conf").write_text(DEFAULTS, encoding="utf-8")
    assert settings.settings_at_launch({}) == {
        "spark.master": "spark://host:7077",
        "spark.app.name": "of the file",
        "spark.driver.memory": "3g",
        "spark.jars.packages": "a:b:1,    c:d:2",
    }


def test_arguments_of_spark_submit_win_over_the_file_and_conf_over_both(conf_folder, monkeypatch):
    (conf_folder / "spark-defaults.conf").write_text(DEFAULTS, encoding="utf-8")
    monkeypatch.setenv(
        "PYSPARK_SUBMIT_ARGS",
        "--master local[3] -c spark.a=1=2 --conf 'spark.b=x y' --verbose pyspark-shell",
    )
    known = settings.settings_at_launch({"spark.b": "z"})
    assert (known["spark.master"], known["spark.a"], known["spark.b"]) == ("local[3]", "1=2", "z")
    assert known["spark.app.name"] == "of the file"


def test_another_file_of_defaults_is_read_instead(conf_folder, monkeypatch):
    (conf_folder / "spark-defaults.conf").write_text(DEFAULTS, encoding="utf-8")
    other = conf_folder / "other.conf"
    other.write_text("spark.x 1", encoding="utf-8")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--properties-file {other} pyspark-shell")
    assert settings.settings_at_launch({}) == {"spark.x": "1"}


@pytest.mark.usefixtures("conf_folder")
@pytest.mark.parametrize("arguments", ["--conf", "--master 'open"])
def test_arguments_that_spark_will_refuse_are_left_to_spark(monkeypatch, arguments):
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    monkeypatch.setenv("MASTER", "local[7]")
    assert settings.settings_at_launch({}) == {"spark.master": "local[7]"}


@each(
    ("master", "cores"),
    [("local", 1), ("local[3]", 3), ("local[3,2]", 3), ("local-cluster[2, 4, 1024]", 8)],
)
def test_shuffles_go_into_two_partitions_a_core(master, cores):
    assert settings.cores_of(master) == cores
    ours = settings.context_defaults(master)
    assert ours["spark.sql.shuffle.partitions"] == str(2 * cores)


def test_local_sessions_stay_on_the_loopback_address():
    for master in ("local[*]", "local-cluster[2,1,1024]", "spark://127.0.0.1:7077"):
        assert settings.context_defaults(master)["spark.driver.host"] == "127.0.0.1"
        assert settings.launch_environment(master)["SPARK_LOCAL_IP"] == "127.0.0.1"


def test_a_cluster_keeps_its_own_settings():
    for master in ("yarn", "spark://host:7077", "k8s://https://127.0.0.1"):
        assert settings.context_defaults(master) == settings.EVERYWHERE
        assert settings.launch_environment(master) == {}


def test_the_driver_takes_a_part_of_the_memory():
    assert 1 << 30 <= settings.driver_memory() <= 16 << 30


@pytest.mark.usefixtures("conf_folder")
@pytest.mark.parametrize("on_terminal", [True, False])
def test_there_is_a_progress_bar_on_a_terminal_only(monkeypatch, on_terminal):
    monkeypatch.setattr(sys, "stderr", type("Terminal", (), {"isatty": lambda _: on_terminal})())
    ours = settings.launch_defaults({}, "local[1]")
    assert ours["spark.ui.showConsoleProgress"] == str(on_terminal).lower()
    asked = {"spark.ui.showConsoleProgress": "true"}
    assert "spark.ui.showConsoleProgress" not in settings.launch_defaults(asked, "local[1]")


def test_logging_is_quiet_unless_somebody_configured_it(conf_folder):
    quiet = settings.launch_defaults({}, "local[1]")
    name, _, file = quiet["spark.driver.defaultJavaOptions"].partition("=file://")
    assert name == "-Dlog4j2.configurationFile"
    assert Path(file).read_text(encoding="utf-8").count("rootLogger.level = error") == 1
    assert "spark.executor.defaultJavaOptions" not in settings.launch_defaults({}, "yarn")
    for known in (
        {"spark.log.level": "INFO"},
        {"spark.driver.extraJavaOptions": "-Dlog4j2.configurationFile=mine"},
        {"spark.driver.defaultJavaOptions": "-Xss8m"},
    ):
        ours = settings.launch_defaults(known, "local[1]")
        assert "spark.driver.defaultJavaOptions" not in ours
    (conf_folder / "log4j2.xml").touch()
    assert "spark.driver.defaultJavaOptions" not in settings.launch_defaults({}, "local[1]")
