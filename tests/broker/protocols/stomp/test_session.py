"""Sessions: the frames of a client become requests; the first bad one ends them."""

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis.broker.protocols.stomp.frames import FrameLimits
from tamis.broker.protocols.stomp.requests import (
    Acknowledge,
    Commit,
    Confirm,
    Connect,
    Disconnect,
    Failure,
    Publish,
    Subscribe,
    Unsubscribe,
)
from tamis.broker.protocols.stomp.session import Session, SessionLimits
from tamis.broker.protocols.stomp.transactions import TransactionLimits

LIMITS = SessionLimits(FrameLimits(2000, 20, 1000), TransactionLimits(2, 5, 1000))


def frame(command, *headers, body=""):
    return "\n".join([command, *headers, "", f"{body}\0"]).encode()


def connected(version="1.2", *headers):
    session = Session()
    session.receive(frame("CONNECT", f"accept-version:{version}", "host:h", *headers))
    (request,) = session.requests()
    assert isinstance(request, Connect)
    session.accept(LIMITS)
    return session


def ask(session, *frames):
    session.receive(b"".join(frames))
    return session.requests()


def subscribed(version="1.2", ack="client", sent=100):
    session = connected(version)
    (request,) = ask(session, frame("SUBSCRIBE", "id:a", "destination:/topic/t", f"ack:{ack}"))
    request.subscription.highest = sent
    return session, request.subscription


@each(
    ("offered", "version"),
    [
        (None, "1.0"), ("1.0", "1.0"), ("1.0,1.1", "1.1"), ("1.2,1.0", "1.2"),
        ("1.1, 1.2 ,2.0", "1.2"),
    ],
)  # fmt: skip
def test_the_highest_common_version_is_spoken(offered, version):
    session = Session()
    session.receive(frame("STOMP", *([f"accept-version:{offered}"] if offered else [])))
    assert isinstance(session.requests()[0], Connect)
    assert session.version == version


def test_connect_says_who_the_client_is():
    session = Session()
    head = ["accept-version:1.2", "host:h", "login:ann", "passcode:a:b\\c", "heart-beat:500,2000"]
    session.receive(frame("CONNECT", *head))
    assert session.requests() == [Connect("ann", "a:b\\c", None)]
    assert session.client_beats == (0.5, 2.0)
    session = Session()
    session.receive(frame("CONNECT", "accept-version:1.2", "Authorization:Bearer x"))
    assert session.requests() == [Connect(None, None, "Bearer x")]


def test_nothing_is_read_until_the_client_is_accepted():
    session = Session()
    session.receive(frame("CONNECT", "accept-version:1.2") + frame("BEGIN", "transaction:a"))
    assert len(session.requests()) == 1
    assert session.requests() == []
    session.accept(LIMITS)
    assert session.requests() == []  # BEGIN asks for no receipt
    assert not session.ended


@each(
    ("frames", "problem"),
    [
        ([frame("SEND", "destination:/topic/t")], "expected CONNECT"),
        ([frame("SEND", "destination:/topic/t", body="{}")], "expected CONNECT"),
        ([frame("BEGIN", "transaction:t")], "expected CONNECT"),
        ([frame("CONNECT", "accept-version:3.0")], "no common version"),
        ([frame("CONNECT", "accept-version:1.2", "heart-beat:x")], "two numbers"),
        ([b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"], "not a command"),
        ([b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 17000], "16,000 bytes"),
    ],
)
def test_a_connection_that_begins_wrongly_ends(frames, problem):
    session = Session()
    requests = ask(session, *frames)
    assert isinstance(requests[-1], Failure)
    assert problem in str(requests[-1].error)
    assert session.ended
    assert ask(session, frame("CONNECT")) == []


@each(
    ("frames", "problem"),
    [
        ([frame("CONNECT")], "does not send CONNECT here"),
        ([frame("MESSAGE")], "does not send MESSAGE here"),
        ([frame("SEND")], "expected /topic/NAME"),
        ([frame("SEND", "destination:/queue/x", "receipt:7")], "expected /topic/NAME"),
        ([frame("SEND", "destination:/topic/t", body="x" * 1001)], "limit is 1,000"),
        ([frame("SUBSCRIBE", "destination:/topic/t")], "needs the header id"),
        ([frame("SUBSCRIBE", "id:a", "destination:/topic/t", "ack:never")], "client-individual"),
        ([frame("SUBSCRIBE", "id:a", "destination:/topic/t", "prefetch-count:0")], "from 1"),
        ([frame("SUBSCRIBE", "id:a", "destination:/topic/t")] * 2, "already"),
        ([frame("UNSUBSCRIBE", "id:b")], "no subscription 'b'"),
        ([frame("UNSUBSCRIBE")], "needs the header id"),
        ([frame("ACK", "id:nonsense")], "not the ack header"),
        ([frame("ACK", "id:1-5")], "not the ack header"),
        ([frame("BEGIN")], "needs the header transaction"),
        ([frame("BEGIN", "transaction:a")] * 2, "has begun already"),
        ([frame("BEGIN", f"transaction:{n}") for n in range(3)], "2 transactions are open"),
        ([frame("COMMIT", "transaction:a")], "has not begun"),
        ([frame("ABORT", "transaction:a")], "has not begun"),
        ([frame("SEND", "destination:/topic/t", "transaction:a")], "has not begun"),
        (
            [frame("BEGIN", "transaction:a")]
            + [frame("SEND", "destination:/topic/t", "transaction:a", body="x" * 500)] * 2,
            "commit more often",
        ),
        (
            [frame("BEGIN", "transaction:a")]
            + [frame("SEND", "destination:/topic/t", "transaction:a")] * 6,
            "commit more often",
        ),
    ],
)
def test_a_bad_frame_ends_the_session_and_says_why(frames, problem):
    session = connected()
    requests = ask(session, *frames)
    failure = requests[-1]
    assert isinstance(failure, Failure)
    assert problem in str(failure.error)
    assert failure.receipt == ("7" if b"receipt:7" in frames[-1] else None)
    assert ask(session, frame("SEND", "destination:/topic/t")) == []


def test_sends_that_follow_each_other_are_one_request():
    session = connected()
    first, second = (
        frame("SEND", "destination:/topic/a", body="1"),
        frame("SEND", "destination:/topic/b", "receipt:r", body="2"),
    )
    requests = ask(session, first, second, frame("DISCONNECT", "receipt:end"))
    assert isinstance(requests[0], Publish)
    assert [(s.topic, s.body, s.receipt) for s in requests[0].sends] == [
        ("a", b"1", None),
        ("b", b"2", "r"),
    ]
    assert requests[1:] == [Disconnect("end")]
    assert session.ended


def test_a_subscription_is_asked_for_with_its_options():
    session = connected("1.2", "client-id:me")
    (request,) = ask(session, frame(
        "SUBSCRIBE", "id:a", "destination:/topic/t", "selector:price < 10", "ack:client",
        "activemq.subscriptionName:mine", "from:17", "activemq.prefetchSize:5", "slow:disconnect",
        "receipt:r",
    ))  # fmt: skip
    subscription = request.subscription
    assert (subscription.number, subscription.key, subscription.topic) == (1, "a", "t")
    assert request[1:] == ("price < 10", "me.mine", 17, 5, "disconnect", "r")
    (plain,) = ask(session, frame("SUBSCRIBE", "id:b", "destination:/topic/t"))
    assert plain[1:] == ("TRUE", None, "new", None, None, None)
    assert plain.subscription.ack == "auto"


def test_unsubscribing_ends_a_subscription_and_with_its_name_deletes_it():
    session = connected("1.2", "client-id:me")
    ask(session, frame("SUBSCRIBE", "id:a", "destination:/topic/t"))
    (request,) = ask(session, frame("UNSUBSCRIBE", "id:a"))
    assert (request.durable, request.topic) == (None, "t")
    (request,) = ask(session, frame("UNSUBSCRIBE", "id:a", "durable-subscription-name:x"))
    assert request == Unsubscribe(None, "me.x", None, None)
    (again,) = ask(session, frame("SUBSCRIBE", "id:a", "destination:/topic/t"))
    assert isinstance(again, Subscribe)
    assert again.subscription.number == 2


def test_acknowledgements_that_follow_each_other_are_one_request():
    session, subscription = subscribed()
    (request,) = ask(
        session,
        frame("ACK", "id:1-5", "receipt:r"),
        frame("NACK", "id:1-6"),
        frame("ACK", "id:1-7"),
    )
    assert isinstance(request, Acknowledge)
    assert request.acks == [
        (subscription, 5, True),
        (subscription, 6, False),
        (subscription, 7, True),
    ]
    assert request.receipts == ["r"]


def test_what_a_subscription_sent_before_it_ended_can_be_acknowledged():
    session, _ = subscribed()
    ask(session, frame("UNSUBSCRIBE", "id:a"))
    assert ask(session, frame("ACK", "id:1-5", "receipt:r")) == [Acknowledge([], ["r"])]


def test_what_was_never_sent_cannot_be_acknowledged():
    for identifier in ("1-101", "2-5", "0-0"):
        session, _ = subscribed()
        assert isinstance(ask(session, frame("ACK", f"id:{identifier}"))[-1], Failure)


def test_older_versions_acknowledge_by_message_id():
    session, subscription = subscribed("1.1")
    (request,) = ask(session, frame("ACK", "message-id:t@5", "subscription:a"))
    assert request.acks == [(subscription, 5, True)]
    assert isinstance(ask(session, frame("ACK", "message-id:t@5"))[-1], Failure)
    session, subscription = subscribed("1.0")
    (request,) = ask(session, frame("ACK", "message-id:t@5"))
    assert request.acks == [(subscription, 5, True)]
    assert isinstance(ask(session, frame("NACK", "message-id:t@5"))[-1], Failure)


def test_a_client_of_the_first_version_needs_no_ids():
    session = connected("1.0")
    (request,) = ask(session, frame("SUBSCRIBE", "destination: /topic/t"))
    assert request.subscription.opening == b"MESSAGE"
    (request,) = ask(session, frame("UNSUBSCRIBE", "destination: /topic/t"))
    assert request.topic == "t"


def test_automatic_acknowledgement_needs_no_ack():
    session, _ = subscribed(ack="auto")
    assert ask(session, frame("ACK", "id:1-5")) == [Acknowledge([], [])]


def test_a_transaction_waits_for_its_commit():
    session, subscription = subscribed()
    requests = ask(
        session,
        frame("BEGIN", "transaction:x", "receipt:b"),
        frame("SEND", "destination:/topic/t", "transaction:x", "receipt:s", body="1"),
        frame("ACK", "id:1-5", "transaction:x"),
        frame("SEND", "destination:/topic/t", body="2"),
        frame("COMMIT", "transaction:x", "receipt:c"),
    )
    assert requests[:2] == [Confirm("b"), Confirm("s")]
    assert isinstance(requests[2], Publish)
    commit = requests[3]
    assert isinstance(commit, Commit)
    assert [send.body for send in commit.sends] == [b"1"]
    assert commit.acks == [(subscription, 5, True)]
    assert commit.receipt == "c"


def test_an_aborted_transaction_leaves_nothing():
    session = connected()
    one = [
        frame("BEGIN", "transaction:x"),
        frame("SEND", "destination:/topic/t", "transaction:x", body="y" * 900),
        frame("ABORT", "transaction:x", "receipt:a"),
    ]
    assert ask(session, *one * 5) == [Confirm("a")] * 5


pieces = st.lists(
    st.sampled_from([
        frame("CONNECT", "accept-version:1.2"), frame("SEND", "destination:/topic/t", body="{}"),
        frame("SUBSCRIBE", "id:a", "destination:/topic/t", "ack:client"), frame("ACK", "id:1-0"),
        frame("UNSUBSCRIBE", "id:a"), frame("BEGIN", "transaction:x"), frame("NACK", "id:1-x"),
        frame("SEND", "destination:/topic/t", "transaction:x"), frame("COMMIT", "transaction:x"),
        frame("DISCONNECT", "receipt:z"), b"\n", b"\0", b"SEND\n", b"\\", b"\r\n", b"id:a\n\n",
    ]) | st.binary(max_size=4), max_size=15,
)  # fmt: skip


def flat(requests):
    """Requests without the groups, which depend on how the bytes came."""
    for request in requests:
        if isinstance(request, Publish):
            yield from (tuple(send) for send in request.sends)
        elif isinstance(request, Acknowledge):
            yield from ((ack.offset, ack.accepted) for ack in request.acks)
            yield from request.receipts
        elif isinstance(request, Failure):
            yield str(request.error)
        elif isinstance(request, Subscribe | Unsubscribe):
            yield request.durable
        else:
            yield type(request).__name__


@given(pieces, st.lists(st.integers(0, 400), max_size=10))
def test_any_bytes_in_any_pieces_ask_for_the_same(parts, cuts):
    data = b"".join(parts)

    def run(ends):
        session, found = connected(), []
        for start, end in zip([0, *ends], ends, strict=False):
            found += ask(session, data[start:end])
        return list(flat(found)), session.ended

    inside = sorted(cut for cut in cuts if cut < len(data))
    assert run([*inside, len(data)]) == run([len(data)])
