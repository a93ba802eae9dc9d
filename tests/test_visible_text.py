"""Nothing from outside commands a terminal, wherever it is shown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis import DeadLetter, Matcher, Profile, parse
from tamis.cli import main
from tamis.visible_text import visible, visible_json, visible_lines

NASTY = ["\x1b[31m", "\x00", "\x07", "\x7f", "\x9b31m", "\u202e", "\u2066", "\u200b", "\u2028",
         "\ufeff", "\U000e0001", "\r", "\n", "\udcff"]  # fmt: skip


@given(st.text() | st.lists(st.sampled_from([*NASTY, "é", "日本", " "])).map("".join))
def test_what_is_shown_prints(text):
    assert visible(text).isprintable()
    assert visible_lines(text).replace("\n", "").isprintable()
    assert visible_lines(text).count("\n") == text.count("\n")
    assert visible_json({text: text}).isprintable()
    assert json.loads(visible_json([text])) == [text]
    if text.isprintable():
        assert visible(text) == text


def shown_by_a_letter(text):
    return str(DeadLetter("events", 1, text, f"attribute {text} is bad"))


def shown_by_why(text):
    name, constant = text.replace("`", ""), text.replace("'", "")
    if not name or "\udcff" in text or "\x00" in text:
        return ""
    matcher = Matcher({f"`{name}`": "string"})
    matcher.subscribe(text, f"`{name}` = '{constant}'")
    return str(matcher.why(text, {name: text}))


def shown_by_a_plan(text):
    if "\udcff" in text:
        return ""
    matcher = Matcher({f"`{text}`": "string"}, "sliced")
    matcher.subscribe_many({n: f"`{text}` = 'x{n}'" for n in range(100)})
    return str(matcher.explain())


def shown_by_a_profile(text):
    if "\udcff" in text:
        return ""
    events = [{text: text, "other": "a"}, {text: text}, {"other": text}, {}]
    return Profile.of(events, {f"`{text}`": "string", "other": "string"}).report()


@each("show", [shown_by_a_letter, shown_by_why, shown_by_a_plan, shown_by_a_profile])
def test_reports(show):
    for text in (*NASTY, "".join(NASTY[:-1])) if show is not shown_by_a_plan else ["\x1b\u202e"]:
        for line in show(f"a{text}b").split("\n"):
            assert line.isprintable()


@pytest.mark.parametrize("options", [[], ["--json"], ["--event", '{"a\u202e": "\x9b"}']])
def test_the_command_line(capsys, options):
    text = "`a\u202e` = '\x1b[31m\x9b' OR s LIKE 'b\u2066%'"
    assert main(["explain", text, *options]) == 0
    shown = capsys.readouterr().out
    assert all(line.isprintable() for line in shown.split("\n"))
    if options == ["--json"]:
        kept = json.loads(shown)["filter"]
        assert parse(kept, {"`a\u202e`": "string", "s": "string"})
    assert main(["explain", text + " AND `c\x1b`.\u202e"]) == 1
    assert all(line.isprintable() for line in capsys.readouterr().err.split("\n"))
