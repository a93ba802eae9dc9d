"""@stomp/stompjs, as it is, in a page of a real browser: STOMP over a WebSocket.

Runs where Chromium and the package are: `apt-get install chromium`, and `npm install
@stomp/stompjs` in the root of the repository, or TAMIS_STOMPJS names its file `stomp.umd.js`.
"""

import json
import os
import queue
import shutil
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BUNDLE = Path(
    os.environ.get("TAMIS_STOMPJS", ROOT / "node_modules/@stomp/stompjs/bundles/stomp.umd.js")
)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip

PAGE = """<!doctype html><meta charset="utf-8"><script src="/stomp.js"></script><script>
const tell = (what) => fetch("/told", {method: "POST", body: JSON.stringify(what)});
window.onerror = (message) => tell({problem: message});
const found = {version: null, prices: [], receipts: [], redelivered: []};
const topic = "/topic/stompjs";
const client = new StompJs.Client({
  brokerURL: "BROKER", reconnectDelay: 0, heartbeatIncoming: 1000, heartbeatOutgoing: 1000,
  connectHeaders: {"client-id": "page"},
});
client.onConnect = (frame) => {
  found.version = frame.headers.version;
  const headers = {selector: "price < 10", ack: "client-individual",
                   "durable-subscription-name": "mine", receipt: "subscribed"};
  client.subscribe(topic, (message) => {
    if (message.headers.redelivered === "true") {
      found.redelivered.push(JSON.parse(message.body).price);
      message.ack();
      client.subscribe(topic, () => {}, {selector: "prise < 10"});
      return;
    }
    found.prices.push(JSON.parse(message.body).price);
    if (found.prices.length === 1) message.ack(); else message.nack();
  }, headers);
  for (const price of [5, 50, 7]) {
    const receipt = "sent-" + price;
    client.watchForReceipt(receipt, () => found.receipts.push(receipt));
    client.publish({destination: topic, body: JSON.stringify({price, symbol: "grüße"}),
                    headers: {receipt}});
  }
};
client.onStompError = (frame) => {
  found.error = frame.body;
  tell(found);
};
client.onWebSocketError = () => tell({problem: "the WebSocket failed"});
client.activate();
</script>"""


class Told:
    """Serves the page, and takes what the page tells."""

    def __init__(self, broker):
        self.said = queue.Queue()
        page, said = PAGE.replace("BROKER", broker).encode(), self.said

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                content = BUNDLE.read_bytes() if self.path == "/stomp.js" else page
                kind = "text/javascript" if self.path == "/stomp.js" else "text/html"
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.end_headers()
                self.wfile.write(content)

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(204)
                self.end_headers()
                said.put(json.loads(body))

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/"

    @contextmanager
    def serving(self):
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            self.server.shutdown()
            self.server.server_close()
            thread.join()


@contextmanager
def browser(address, folder, said):
    """Chromium with a page; when it ends on its own, that is said, too."""
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder}", "--remote-debugging-port=0", address]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:

        def wait():
            said.put({"problem": f"Chromium ended with code {process.wait()}"})

        thread = threading.Thread(target=wait)
        thread.start()
        try:
            yield
        finally:
            process.terminate()
            thread.join()


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: apt-get install chromium")
@pytest.mark.skipif(
    not BUNDLE.is_file(), reason=f"there is no {BUNDLE}: npm install @stomp/stompjs"
)
def test_a_page_publishes_subscribes_and_acknowledges(served, tmp_path):
    account = next(iter(served.broker.accounts))
    served.run(served.broker.create_topic(account, "stompjs", "symbol string, price double"))
    told = Told(f"ws://127.0.0.1:{served.port}/stomp")
    with told.serving(), browser(told.address, tmp_path, told.said):
        found = told.said.get()
    assert "problem" not in found, found
    assert found["version"] == "1.2"
    assert found["prices"] == [5, 7]
    assert found["redelivered"] == [7]
    assert found["receipts"] == ["sent-5", "sent-50", "sent-7"]
    assert "did you mean 'price'?" in found["error"]
    assert "\n  prise < 10\n  ^^^^^" in found["error"]
