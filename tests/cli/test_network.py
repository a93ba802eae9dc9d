"""``tamis network``: what is wrong with its file; a network runs, and stops together."""

import http.client
import json
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from cases import each
from tamis.broker.network_file import read_network_file
from tamis.broker.settings_file import settings_of
from tamis.cli import main

THREE = """
links = [["b1", "b2"], ["b2", "b3"]]
[brokers.b1]
[brokers.b2]
[brokers.b3]
"""
LINKED = "b1  linked, 0 events behind\nb3  linked, 0 events behind\n"


@each(
    "text, message",
    [
        ("links = []", "the network has no brokers"),
        ('links = [["b1"]]\n[brokers.b1]', "a link has two brokers"),
        ('links = [["b1", "b2"]]\n[brokers.b1]', "there is no broker 'b2'"),
        (THREE.replace("[[", '[["b3", "b1"], ['), "'b2' and 'b3' would close a cycle"),
        ('[brokers.b1]\nhtp = "127.0.0.1:0"', "did you mean 'http'?"),
        ('[brokers.b1]\nconfig = "nowhere.toml"', "there is no file"),
        ("[brokers.b1\n", "(line 1"),
        ("links = " + "[" * 5_000, "nested too deeply"),
        ('strategy = "all"\n[brokers.b1]', "expected one of flooding, simple"),
        ('[merging]\npolicy = "often"\n[brokers.b1]', "cannot read 'often'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text, message, put, capsys):
    assert main(["network", str(put("n.toml", text))]) == 1
    assert message in capsys.readouterr().err


@contextmanager
def ended(process):
    """End a process if what is done with it fails."""
    try:
        yield
    except BaseException:
        process.terminate()
        raise


@pytest.mark.long
def test_a_network_runs_and_stops_together(put, capsys):
    file = put("n.toml", THREE)
    command = [sys.executable, "-m", "tamis", "network", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, ended(process):
        lines = [process.stdout.readline() for _ in range(4)]
        assert lines[-1] == "ready\n"
        found = [re.match(r"ready (b\d) http=(\S+) stomp=\S+ listen=\S+\n", one) for one in lines]
        addresses = {one[1]: one[2] for one in found[:-1]}
        schema = json.dumps({"schema": {"price": "double"}}).encode()
        connection = http.client.HTTPConnection(addresses["b1"])
        connection.request("PUT", "/topics/quotes", schema, {"Content-Type": "application/json"})
        assert connection.getresponse().status == 200
        connection.close()
        url = ["--url", f"http://{addresses['b2']}"]
        while main(["peer", "list", *url]) == 0 and capsys.readouterr().out != LINKED:
            pass
        held, shown = r"b1 .*\n  filters   1 held of it, \d announced\n", ""
        while not re.search(held, shown):  # it is told soon after they are linked
            assert main(["peer", "list", "--traffic", *url]) == 0
            shown = capsys.readouterr().out
        assert re.search(r"  received  [0-9,]+ bytes, [0-9,]+ frames, 0 events, [0-9,]+ fil", shown)
        assert "  unwanted  0 events of it\n" in shown
        assert main(["peer", "list", "--savings", *url]) == 0
        saved = "quotes: all 0 filters of 0 bytes, not covered 0 filters of 0 bytes, announced 0"
        assert saved in capsys.readouterr().out
        assert main(["peer", "remove", "b3", *url]) == 1
        assert "peer 'b3' is " in capsys.readouterr().err
        assert main(["peer", "remove", "b9", *url]) == 1
        assert "there is no peer 'b9'" in capsys.readouterr().err
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    assert sorted(one.name for one in (file.parent / "n-data").iterdir()) == ["b1", "b2", "b3"]


def test_the_files_of_the_documentation_are_read(put, tmp_path):
    text = (Path(__file__).parents[2] / "docs/network.md").read_text(encoding="utf-8")
    network, broker = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    described = read_network_file(put("three.toml", network))
    assert described.links == [("paris", "lyon"), ("lyon", "nice")]
    for name in ("authority.pem", "b.pem", "b.key"):
        (tmp_path / name).touch()
    tls = '[tls]\ncertificate = "b.pem"\nkey = "b.key"\n'
    settings = settings_of(broker + tls, tmp_path / "b.toml")
    assert settings.network.peers["b3"].secret.startswith("another")
    assert settings.network.patience == 10.0
