"""What a durable subscriber gets, has got, and has acknowledged."""

from tamis.broker.delivery.progress import Progress, decoded, encoded, starting_at
from tamis.broker.delivery.window import Window
from tamis.broker.records import Delivery, DeliveryOptions, Record


def of(*offsets):
    return [Delivery(Record(n, 0, str(n), b"", b"{}"), 1) for n in offsets]


def sent(window, most=100, now=0.0):
    return [(one.record.offset, one.attempt) for one in window.take(most, now)]


def window(start=0, **options):
    return Window(DeliveryOptions(**options), starting_at(start))


def test_no_more_than_the_window_is_unacknowledged():
    one = window(window=2)
    assert one.fill(of(0, 3, 4, 9)) == 4
    assert sent(one) == [(0, 1), (3, 1)]
    assert sent(one) == []
    assert one.ack(3)
    assert not one.ack(3)
    assert sent(one) == [(4, 1)]
    assert one.progress(10) == Progress(9, 9, {0: 1, 4: 1})
    assert one.progress(10).cursor == 0


def test_acknowledging_up_to_an_offset_concerns_what_was_not_sent_too():
    one = window()
    one.fill(of(0, 1, 2, 3))
    assert sent(one, 2) == [(0, 1), (1, 1)]
    assert one.ack_up_to(2) == 2
    assert one.progress(4) == Progress(3, 3, {})
    assert one.fill(of(4)) == 1
    assert sent(one) == [(3, 1), (4, 1)]


def test_what_is_refused_comes_again_first_and_at_last_is_exhausted():
    one = window(most_attempts=2)
    one.fill(of(0, 1, 2))
    assert sent(one, 2) == [(0, 1), (1, 1)]
    assert one.nack(0)
    assert not one.nack(2)
    assert sent(one) == [(0, 2), (2, 1)]
    assert one.nack(0)
    assert list(one.exhausted) == [0]
    assert one.progress(3) == Progress(3, 3, {0: 2, 1: 1, 2: 1})
    assert one.ack(0)
    assert not one.exhausted


def test_what_is_not_acknowledged_in_time_comes_again():
    one = window(ack_timeout=10)
    one.fill(of(0, 1))
    assert sent(one, 1, now=0) == [(0, 1)]
    assert sent(one, 1, now=5) == [(1, 1)]
    assert one.deadline == 10
    assert one.time_out(now=9) == 0
    assert one.time_out(now=10) == 1
    assert one.deadline == 15
    assert one.ack(0)  # late, and in time: it was not sent again
    assert sent(one, now=11) == []


def test_what_waits_is_bounded_in_events_and_bytes():
    one = window(buffer=2)
    assert one.fill(of(0, 1, 2)) == 2
    assert (one.room, one.wants_more) == (0, False)
    sent(one, 1)
    assert (one.room, one.wants_more) == (1, True)
    small = window(buffer_bytes=3)
    assert small.fill(of(0, 1)) == 2
    assert small.fill(of(2)) == 0


def test_a_returning_subscriber_gets_what_it_had_first():
    one = Window(DeliveryOptions(most_attempts=3), Progress(5, 7, {1: 1, 3: 2, 4: 3}))
    assert one.fill(of(1, 2, 3, 4, 5, 6, 7)) == 7
    assert list(one.exhausted) == [4]
    assert sent(one) == [(1, 2), (3, 3), (5, 2), (6, 2), (7, 1)]


def test_what_never_returns_is_forgotten():
    one = Window(DeliveryOptions(), Progress(5, 5, {1: 1, 3: 1}))
    one.fill(of(1))
    assert one.progress(2).unacknowledged == {1: 1, 3: 1}
    one.passed(4)
    assert one.progress(4).unacknowledged == {1: 1, 3: 1}
    one.passed(5)
    assert one.progress(5) == Progress(5, 5, {1: 1})


def test_taking_can_be_acknowledging():
    one = window(auto_ack=True, window=1)
    one.fill(of(0, 1))
    assert sent(one, 1) == [(0, 1)]
    assert one.progress(2) == Progress(1, 1, {})
    assert sent(one) == [(1, 1)]


def test_with_another_filter_what_does_not_match_is_done():
    one = window()
    one.fill(of(0, 1, 2, 3, 4))
    assert sent(one, 3) == [(0, 1), (1, 1), (2, 1)]
    one.nack(2)
    one.keep_if(lambda record: record.offset == 1)
    assert one.forget_waiting() == 3
    assert one.forget_waiting() is None
    assert one.progress(3) == Progress(3, 3, {1: 1})


def test_progress_is_stored_in_bytes():
    for offsets in ({}, {3: 1}, {5: 2, 1 << 40: 9}):
        assert decoded(encoded(offsets)) == offsets


def test_progress_without_a_connection():
    some = Progress(5, 5, {1: 1, 3: 2})
    assert some.acknowledged_up_to(2) == Progress(5, 5, {3: 2})
    assert some.acknowledged_up_to(8) == Progress(9, 9, {})
    assert some.after_crash(9) == Progress(5, 9, {1: 1, 3: 2})
