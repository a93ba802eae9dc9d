"""``tamis network``: what is wrong with its file; a network runs, and stops together."""

import http.client
import json
import re
import signal
import subprocess
import sys

import pytest

from cases import each
from tamis.cli import main

THREE = """
links = [["b1", "b2"], ["b2", "b3"]]
[brokers.b1]
[brokers.b2]
[brokers.b3]
"""


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
    ],
)
def test_what_is_wrong_is_said_with_its_place(text, message, put, capsys):
    assert main(["network", str(put("n.toml", text))]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.long
def test_a_network_runs_and_stops_together(put):
    file = put("n.toml", THREE)
    command = [sys.executable, "-m", "tamis", "network", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        lines = [process.stdout.readline() for _ in range(4)]
        assert lines[-1] == "ready\n"
        found = [re.match(r"ready (b\d) http=(\S+) stomp=\S+ listen=\S+\n", one) for one in lines]
        addresses = {one[1]: one[2] for one in found[:-1]}
        schema = json.dumps({"schema": {"price": "double"}}).encode()
        connection = http.client.HTTPConnection(addresses["b1"])
        connection.request("PUT", "/topics/quotes", schema, {"Content-Type": "application/json"})
        assert connection.getresponse().status == 200
        connection.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    assert sorted(one.name for one in (file.parent / "n-data").iterdir()) == ["b1", "b2", "b3"]
