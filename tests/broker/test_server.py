"""The process of a broker: how it starts, listens and stops."""

import asyncio
import json
import signal
import socket
import ssl
import urllib.request
from dataclasses import replace

import pytest

from broker_process import BrokerProcess
from certificates import make_certificate
from tamis.broker.accounts import new_token, token_hash
from tamis.broker.server import rehearse, running
from tamis.broker.settings import Address, Settings
from tamis.errors import FileError, TamisError


def get(broker, path, *, scheme="http", context=None, **headers):
    request = urllib.request.Request(  # noqa: S310 - of this machine
        f"{scheme}://127.0.0.1:{broker.http}{path}", headers=headers
    )
    with urllib.request.urlopen(request, context=context) as answer:  # noqa: S310 - as above
        return answer.read()


@pytest.mark.long
def test_it_serves_stops_cleanly_and_knows_its_topics_again(tmp_path):
    settings = Settings(
        data=tmp_path / "data", http=Address("127.0.0.1", 0), stomp=Address("127.0.0.1", 0)
    )
    with BrokerProcess(tmp_path) as broker:
        request = urllib.request.Request(  # noqa: S310 - of this machine
            f"{broker.url}/topics/quotes",
            json.dumps({"schema": {"price": "double"}}).encode(),
            {"Content-Type": "application/json"},
            method="PUT",
        )
        urllib.request.urlopen(request).close()  # noqa: S310 - of this machine
        with socket.create_connection(("127.0.0.1", broker.stomp)) as stomp:
            stomp.sendall(b"CONNECT\naccept-version:1.2\nhost:x\n\n\0")
            assert stomp.recv(1000).startswith(b"CONNECTED\n")
            with pytest.raises(TamisError, match="another broker uses the data folder"):
                topics_at(settings)  # two processes must not write to the same folder
            taken = replace(settings, data=tmp_path / "x", http=Address("127.0.0.1", broker.http))
            with pytest.raises(FileError, match=r"http cannot listen on .*: .*in use"):
                topics_at(taken)
            assert broker.stop() == 0
        lines = [json.loads(line) for line in broker.log.splitlines() if line.startswith("{")]
        messages = [one["message"] for one in lines]
        assert "stopping" in messages
        assert messages[-1] == "stopped"
    assert b'"quotes"' in topics_at(settings)


def topics_at(settings):
    """What a server in this process, with these settings, says about its topics."""

    async def run():
        async with running(settings) as addresses:
            url = f"http://{addresses['http']}/topics"
            with await asyncio.to_thread(urllib.request.urlopen, url) as answer:
                return answer.read()

    return asyncio.run(run())


def test_a_data_folder_that_cannot_be_used_is_said(tmp_path, put):
    async def start(data):
        async with running(Settings(data=data)):
            raise AssertionError("it should not start")

    file = put("file", "")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "topics").touch()
    for data in (file, file / "data", tmp_path / "data"):
        with pytest.raises(FileError, match=f"the data folder {data} cannot be used: "):
            asyncio.run(start(data))


@pytest.mark.long
def test_tls_and_accounts_on_both_ports_and_a_renewed_certificate(tmp_path, put):
    certificate, _ = make_certificate(tmp_path)
    token = new_token()
    config = put(
        "tamis.toml",
        '[tls]\ncertificate = "server.pem"\nkey = "server.key"\n'
        f'[accounts.boss]\ntokens = ["{token_hash(token)}"]\nadmin = true\n'
        '[topics.quotes]\nschema = { price = "double" }\n',
    )
    with BrokerProcess(tmp_path / "broker", "--config", str(config)) as broker:
        trusted = ssl.create_default_context(cafile=str(certificate))
        tls = {"scheme": "https", "context": trusted}
        answer = get(broker, "/topics", **tls, Authorization=f"Bearer {token}")
        assert b'"quotes"' in answer
        with pytest.raises(urllib.error.HTTPError, match="401"):
            get(broker, "/topics", **tls)
        with pytest.raises(OSError, match=r"closed|reset|Remote end"):
            get(broker, "/topics")  # without TLS
        assert stomp_answer(broker, trusted, f"login:boss\npasscode:{token}").startswith(
            b"CONNECTED\n"
        )
        assert stomp_answer(broker, trusted, "login:boss\npasscode:x").startswith(b"ERROR\n")

        make_certificate(tmp_path)  # another one, in the same files
        old = certificate_of(broker)
        broker.send(signal.SIGHUP)
        while certificate_of(broker) == old:  # signals are taken when the loop comes to them
            pass
        assert "the certificate was read again" in broker.log
        renewed = ssl.create_default_context(cafile=str(certificate))
        assert get(broker, "/healthz", scheme="https", context=renewed)


def certificate_of(broker):
    return ssl.get_server_certificate(("127.0.0.1", broker.http))


def stomp_answer(broker, context, headers):
    with (
        socket.create_connection(("127.0.0.1", broker.stomp)) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as stomp,
    ):
        stomp.sendall(f"CONNECT\naccept-version:1.2\nhost:x\n{headers}\n\n\0".encode())
        return stomp.recv(1000)


def test_the_rehearsal_matches():
    rehearse()
