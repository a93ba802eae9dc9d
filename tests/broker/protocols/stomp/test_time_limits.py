"""Time limits and heart-beats, with the time passed in."""

from cases import each
from tamis.broker.protocols.stomp.time_limits import TimeLimits, TimeSettings

SETTINGS = TimeSettings(connect=10, frame=60, write=40, send_beat=1, want_beat=10)


def connected(sends=0.0, wants=0.0):
    limits = TimeLimits(SETTINGS, 0)
    limits.connected(sends, wants, 100)
    return limits


def problem(limits, now):
    late = limits.overdue(now)
    return None if late is None else str(late)


def test_a_client_must_connect_in_time():
    limits = TimeLimits(SETTINGS, 5)
    assert limits.next_look(5) == 15
    limits.heard(14)
    assert problem(limits, 14.9) is None
    assert "no CONNECT within 10 seconds" in problem(limits, 15)


def test_a_connected_client_may_be_silent_if_it_promised_nothing():
    limits = connected()
    assert problem(limits, 1e6) is None
    assert not limits.beat_is_due(1e6)


@each(
    ("sends", "wants", "silence", "beat"),
    [(4, 0, 20, None), (15, 0, 30, None), (0, 5, None, 5), (0, 0.1, None, 1), (15, 5, 30, 5)],
)
def test_heart_beats_take_the_slower_wish_of_both_sides(sends, wants, silence, beat):
    limits = connected(sends, wants)
    if silence is None:
        assert problem(limits, 1e6) is None
    else:
        assert problem(limits, 100 + silence - 0.1) is None
        assert "no heart-beat" in problem(limits, 100 + silence)
        limits.heard(110)
        assert problem(limits, 100 + silence) is None
    if beat is None:
        assert not limits.beat_is_due(1e6)
    else:
        assert not limits.beat_is_due(100 + beat - 0.01)
        assert limits.beat_is_due(100 + beat)
        limits.sent(100 + beat)
        assert not limits.beat_is_due(100 + beat)
        assert limits.next_look(100 + beat) <= 100 + 2 * beat


def test_half_a_frame_must_become_a_whole_one():
    limits = connected()
    limits.parsed(110, inside=True, completed=False)
    limits.parsed(120, inside=True, completed=False)
    assert problem(limits, 169) is None
    assert "half a frame" in problem(limits, 170)
    limits.parsed(165, inside=True, completed=True)  # another one
    assert problem(limits, 170) is None
    limits.parsed(166, inside=False, completed=True)
    assert problem(limits, 1e6) is None


def test_nobody_is_late_while_the_server_is_busy():
    limits = connected(sends=4)
    limits.parsed(100, inside=True, completed=True)
    limits.busy(True, 100)
    assert problem(limits, 1000) is None
    limits.busy(False, 1000)
    assert problem(limits, 1019) is None
    assert "no heart-beat" in problem(limits, 1020)


def test_a_client_must_read():
    limits = connected()
    limits.blocked(100)
    assert problem(limits, 139) is None
    assert "did not read" in problem(limits, 140)
    limits.blocked(None)
    assert problem(limits, 1e6) is None


def test_what_begins_later_is_seen_in_time():
    assert connected().next_look(200) == 210
