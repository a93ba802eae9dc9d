"""What holds for all requests: who asks, from which page; errors; metrics, health, the page."""

import base64
import json
import re

import pytest

from cases import each
from served_broker import ServedBroker
from tamis.broker.accounts import Account, password_hash, token_hash
from tamis.broker.grants import Grants
from tamis.broker.web.openapi import description
from tamis.broker.web.operations import OPERATIONS
from tamis.broker.web.origins import is_this_machine
from tamis.language.expression import MATCHES_ALL


@pytest.fixture(scope="module")
def with_accounts(tmp_path_factory):
    every = Grants({"*": MATCHES_ALL})
    accounts = (
        Account(
            "alice", frozenset({token_hash("a")}), password_hash("secret"), every, every, every,
            metrics=True,
        ),
        Account("bob", frozenset({token_hash("b")}), None, every, every),
    )  # fmt: skip
    with ServedBroker(tmp_path_factory.mktemp("data"), accounts=accounts) as broker:
        yield broker


ALICE, BOB = "Bearer a", "Bearer b"


def test_a_broker_with_accounts_asks_who_it_is(with_accounts):
    for header in (None, "Bearer x", "Basic x", "Other"):
        headers = {} if header is None else {"Authorization": header}
        answer = with_accounts.ask("GET", "/topics", **headers)
        assert (answer.status, answer.json["error"]) == (401, "unauthenticated")
        assert "Bearer" in answer.headers["WWW-Authenticate"]
    basic = base64.b64encode(b"alice:secret").decode()
    for header in (ALICE, "bearer a", f"Basic {basic}"):
        assert with_accounts.ask("GET", "/topics", Authorization=header).status == 200
    for path in ("/healthz", "/readyz", "/openapi.json", "/"):
        assert with_accounts.ask("GET", path).status == 200


def test_accounts_do_not_see_subscriptions_of_others(with_accounts):
    body = {"schema": {"price": "double"}}
    assert with_accounts.ask("PUT", "/topics/t", body, Authorization=BOB).status == 403
    assert with_accounts.ask("PUT", "/topics/t", body, Authorization=ALICE).status == 200
    path = "/topics/t/subscriptions/s"
    wanted = {"filter": "price < 12345"}
    assert with_accounts.ask("PUT", path, wanted, Authorization=ALICE).status == 200
    for method, asked, body in [
        ("GET", path, None), ("DELETE", path, None), ("POST", f"{path}/ack", {"offset": 0}),
        ("GET", f"{path}/events", None),
        ("POST", "/topics/t/why", {"subscription": "s", "event": {"price": 1}}),
    ]:  # fmt: skip
        answer = with_accounts.ask(method, asked, body, Authorization=BOB)
        assert (answer.status, answer.json["error"]) == (404, "unknown-subscription"), asked
    for asked in ("/topics/t/subscriptions", "/topics/t", "/topics"):
        assert b"12345" not in with_accounts.ask("GET", asked, Authorization=BOB).body
    assert with_accounts.ask("GET", path, Authorization=ALICE).json["filter"] == "price < 12345"


def test_metrics_are_for_those_who_may_see_them(with_accounts):
    assert with_accounts.ask("GET", "/metrics").status == 401
    assert with_accounts.ask("GET", "/metrics", Authorization=BOB).status == 403
    answer = with_accounts.ask("GET", "/metrics", Authorization=ALICE)
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b"tamis_batch_events_count" in answer.body
    assert b"12345" not in answer.body


def test_metrics_count_what_happens(served):
    topic = served.topic("counted")
    served.subscribe(topic, "s", "TRUE")
    served.ask("POST", f"{topic}/events", [{"price": 1}, {"price": 2}, {"price": "x"}])
    text = served.ask("GET", "/metrics").body.decode()
    assert 'tamis_events_total{topic="counted"} 2' in text
    assert re.search(r'tamis_refused_events_total\{topic="counted",reason="[\w-]+"\} 1', text)
    assert re.search(r'tamis_requests_total\{protocol="http",kind="POST"\} \d+', text)
    with served.listen(f"{topic}/subscriptions/s/events") as stream:
        stream.take(2)
        text = served.ask("GET", "/metrics").body.decode()
        assert 'tamis_connections{protocol="sse"} 1' in text
        assert re.search(r'tamis_subscription_lag\{topic="counted",.*subscription="s"\} \d', text)


@each("method, path, status, error", [
    ("GET", "/nothing", 404, "not-found"),
    ("PATCH", "/topics", 405, "method-not-allowed"),
    ("POST", "/topics/x", 405, "method-not-allowed"),
    ("DELETE", "/stomp", 405, "method-not-allowed"),
    ("GET", "/peers/x", 404, "unknown-peer"),
    ("DELETE", "/peers/x", 404, "unknown-peer"),
])  # fmt: skip
def test_other_paths_and_methods_are_refused_as_json(served, method, path, status, error):
    answer = served.ask(method, path)
    assert (answer.status, answer.json["error"]) == (status, error)
    if status == 405:
        assert answer.headers["Allow"]


def test_only_get_opens_a_web_socket(served):
    answer = served.ask("HEAD", "/stomp")
    assert (answer.status, answer.headers["Allow"]) == (405, "GET")


@each("query, message", [
    ("filtre=price<1", "unknown parameter 'filtre'; did you mean 'filter'?"),
    ("from=0&pretty", "unknown parameter 'pretty'; available: 'filter', 'from', 'limit'"),
    ("filter=TRUE&filter=FALSE", "filter is given twice"),
])  # fmt: skip
def test_parameters_are_never_ignored(served, query, message):
    served.topic("asked")
    answer = served.ask("GET", f"/topics/asked/events?{query}")
    assert (answer.status, answer.json["error"]) == (400, "bad-option")
    assert answer.json["message"] == message


@each("host, here", [
    ("localhost", True), ("localhost:8420", True), ("127.0.0.1:1", True), ("127.9.9.9", True),
    ("[::1]:8420", True), ("", True), ("evil.example", False), ("localhost.evil.example", False),
    ("10.0.0.1", False), ("[::1", False), ("[fe80::1]", False), ("127.0.0.1.evil", False),
])  # fmt: skip
def test_which_hosts_are_this_machine(host, here):
    assert is_this_machine(host) is here


def test_pages_from_elsewhere_may_change_nothing(served):
    topic = served.topic("pages")
    for origin, status in [
        ("http://evil.example", 403), ("null", 403), (f"http://127.0.0.1:{served.port}", 200),
        ("http://localhost:3000", 200),
    ]:  # fmt: skip
        assert served.ask("POST", f"{topic}/events", {}, Origin=origin).status == status
        assert served.ask("GET", "/topics", Origin=origin).status == 200


def test_without_accounts_the_broker_answers_only_as_this_machine(served, with_accounts):
    assert served.ask("GET", "/topics", Host="evil.example").status == 403
    answer = with_accounts.ask("GET", "/topics", Host="broker.example", Authorization=ALICE)
    assert answer.status == 200


def test_an_error_of_the_broker_itself_is_logged_and_not_shown(served, monkeypatch, caplog):
    def fail(_):
        raise RuntimeError("a secret of the broker")

    monkeypatch.setattr(served.broker, "topics", fail)
    answer = served.ask("GET", "/topics")
    assert (answer.status, answer.json["error"]) == (500, "failed")
    assert b"secret" not in answer.body
    assert "a secret of the broker" in caplog.text


def test_health_and_readiness(served):
    assert served.ask("GET", "/healthz").json == {"status": "ok"}
    assert served.ask("GET", "/readyz").json == {"status": "ready"}
    assert served.ask("HEAD", "/healthz").status == 200


def test_the_page_for_people_needs_nothing_from_elsewhere(served):
    page = served.ask("GET", "/")
    assert page.status == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    texts = [page.body]
    for name in re.findall(rb'(?:src|href)="(/[^"]+)"', page.body):
        answer = served.ask("GET", name.decode())
        assert answer.status == 200, name
        texts.append(answer.body)
    assert len(texts) >= 3
    assert not any(re.search(rb"https?://", text) for text in texts)
    ids = set(re.findall(rb'at\("([\w]+)"\)', b"".join(texts)))
    assert ids <= set(re.findall(rb'id="(\w+)"', page.body))


def test_the_description_names_every_operation_and_every_reference_is_there(served):
    page = served.ask("GET", "/openapi.json")
    assert page.headers["Content-Type"] == "application/json"
    described = page.json
    assert described["openapi"].startswith("3.1")
    listed = {
        (method.upper(), path) for path, all_ in described["paths"].items() for method in all_
    }
    assert listed == {(one.method, one.path) for one in OPERATIONS}
    references = set(re.findall(rb'"#/components/schemas/(\w+)"', page.body))
    assert references <= {name.encode() for name in described["components"]["schemas"]}
    assert page.body == description(described["info"]["version"])
    quench = described["components"]["schemas"]["QuenchRequest"]["properties"]
    assert quench["wait"]["default"] == 0  # without one, it is answered at once
    for _, path in listed:
        names = set(re.findall(r"\{(\w+)\}", path))
        for operation in described["paths"][path].values():
            inside = {one["name"] for one in operation["parameters"] if one["in"] == "path"}
            assert inside == names


def test_answers_have_the_members_that_the_description_names(served):
    topic = served.topic("described")
    served.subscribe(topic, "s", "price < 1")
    served.ask("POST", f"{topic}/events", {"price": 0})
    schemas = served.ask("GET", "/openapi.json").json["components"]["schemas"]
    for name, answer in [
        ("Topic", served.ask("GET", topic)),
        ("Subscription", served.ask("GET", f"{topic}/subscriptions/s")),
        ("Publication", served.ask("POST", f"{topic}/events", {"price": 0})),
        ("LogEvents", served.ask("GET", f"{topic}/events")),
        ("FilterReading", served.ask("POST", f"{topic}/check", {"filter": "price = 1"})),
        ("Reason", served.ask("POST", f"{topic}/why", {"subscription": "s", "offset": 0})),
        ("Problem", served.ask("GET", "/topics/absent")),
    ]:
        assert set(schemas[name]["required"]) <= set(answer.json), name
        assert set(answer.json) <= set(schemas[name]["properties"]), name


def test_a_stop_ends_those_who_listen_and_loses_nothing(tmp_path):
    with ServedBroker(tmp_path) as served:
        topic = served.topic("t")
        path = served.subscribe(topic, "s", "TRUE")
        stream = served.listen(f"{path}/events")
        served.ask("POST", f"{topic}/events", {"price": 1})
        stream.take(1)
    assert list(stream) == []  # it ends, and nobody is told not to come back
    stream.close()
    with ServedBroker(tmp_path) as served, served.listen(f"{path}/events") as stream:
        (message,) = stream.take(1)
        assert json.loads(json.dumps(message.content["event"])) == {"price": 1}
        assert message.content["redelivered"] is True
