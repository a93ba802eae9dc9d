r"""Regular expressions: written for Java, as in Spark SQL, and run by RE2 in linear time.

The two dialects agree on most patterns. Where the same text means something else to RE2, it is
rewritten here to what Java means (``.``, ``$``, ``\s``, ``\uhhhh``), or refused with a reason if
RE2 cannot express it. The differences that remain are listed in ``docs/language.md``.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from tamis.bounded_caches import BoundedCache
from tamis.language.like_patterns import BadPattern
from tamis.language.limits import MAX_PATTERN_STEPS

PATTERN_BYTES, STEP_BYTES = 20_000, 64  # of a compiled pattern

_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_SPACES = r"\t\n\x{0b}\f\r "
_AT_END = rf"(?:\r\n|[{_LINE_ENDS}])?\z"

_PIECE = re.compile(
    r"\\u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|\\u(?P<code>[0-9a-fA-F]{4})"
    r"|\\Q(?P<verbatim>.*?)(?:\\E|\Z)"
    r"|\\(?P<escape>.)"
    r"|\(\?(?P<flags>[a-zA-Z]*)(?P<unset>-[a-zA-Z]+)?(?P<close>[:)])"
    r"|(?P<plain>.)",
    re.DOTALL,
)
_BEYOND = re.compile(r"\\x\{[0-9a-fA-F]{3,}\}")  # Latin-1, in a pattern for RE2
_REFUSED_ESCAPES = {
    "0": "write \\x41 or \\u0041 for a character by its code",
    **dict.fromkeys("123456789", "RE2 has no back-references"),
    "v": "list the characters instead: [\\n\\x0B\\f\\r]",
    "C": "it would match a part of a character",
    "Z": "use $",
    "S": "write [^\\s]",
}
_REFUSED_FLAGS = {
    "m": "write (^|\\n) and (\\n|$) for the ends of a line",
    "U": "it means something else in RE2",
    "u": "(?i) alone already ignores the case of all letters of Unicode",
}


def compile_regex(pattern: str) -> Callable[[str], bool]:
    """A function that says whether a value contains the pattern; `BadPattern` if RE2 refuses it.

    RE2 takes time linear in the value, whatever the pattern, and bounds the memory of a pattern.
    """
    return _COMPILED[pattern].contains


class _Compiled(NamedTuple):
    contains: Callable[[str], bool]
    steps: int


class _CompiledRegexes(BoundedCache[str, _Compiled]):
    """Patterns that were compiled."""

    def make(self, pattern: str) -> _Compiled:
        search, steps = _search(to_re2(pattern))
        return _Compiled(lambda value: search(value.encode()) is not None, steps)

    def size(self, pattern: str, compiled: _Compiled) -> int:
        return PATTERN_BYTES + STEP_BYTES * (len(pattern) + compiled.steps)


_COMPILED = _CompiledRegexes(32_000_000)


def _search(translated: str) -> tuple[Callable[[bytes], object], int]:
    """RE2's search for a pattern, and how many steps of its program one character may take."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # where a group was found is of no interest, and takes long
    try:
        compiled = re2.compile(translated, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise BadPattern(
            f"RE2 refuses the pattern: {reason}. It runs in linear time and therefore has no "
            "look-around, no back-references and no possessive quantifiers"
        ) from None
    steps = compiled.programsize
    if steps > MAX_PATTERN_STEPS:
        # A class of Unicode is a thousand steps, of which a character takes few. Among the
        # characters of Latin-1, none of which is beyond \xff, it is one.
        options.encoding = re2.Options.Encoding.LATIN1
        with suppress(re2.error):
            steps = re2.compile(_BEYOND.sub(r"\\xff", translated).encode(), options).programsize
    if steps > MAX_PATTERN_STEPS:
        raise BadPattern(
            f"the pattern repeats too much: written out it has {steps:,} steps, and at most "
            f"{MAX_PATTERN_STEPS:,} are allowed; use smaller numbers in {{...}}"
        )
    return compiled.search, steps


def to_re2(pattern: str) -> str:
    """The pattern that means to RE2 what this one means to Java."""
    return _Translation(pattern).run()


class _Translation:
    """One pass over a pattern; knows whether it is inside a class and what ``.`` matches."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.output: list[str] = []
        self.dot_all = [False]  # one entry per open group
        self.in_class = False
        self.class_start = False  # only the [ or [^ of the class has been read

    def run(self) -> str:
        position = 0
        while position < len(self.pattern):
            found = _PIECE.match(self.pattern, position)
            if found is None:  # pragma: no cover - the last alternative matches anything
                raise AssertionError(self.pattern)
            if self.in_class and found["flags"] is not None:
                self._in_class("(", position)  # (? is two characters here
                position += 1
                continue
            self._piece(found, position)
            position = found.end()
        return "".join(self.output)

    def _piece(self, found: re.Match[str], position: int) -> None:
        if found["plain"] is not None:
            if self.in_class:
                self._in_class(found["plain"], position)
            else:
                self._plain(found["plain"], position)
            return
        self.class_start = False
        if found["high"] is not None:
            pair = bytes.fromhex(found["high"] + found["low"]).decode("utf-16-be")
            self.output.append(rf"\x{{{ord(pair):x}}}")
        elif found["code"] is not None:
            if found["code"][0] in "dD" and found["code"][1] in "89abcdefABCDEF":
                raise BadPattern("half of a surrogate pair is not a character")
            self.output.append(rf"\x{{{found['code']}}}")
        elif found["verbatim"] is not None:
            if self.in_class:
                raise BadPattern(r"\Q is not supported inside a class [...]")
            self.output.append(re.escape(found["verbatim"]))
        elif found["escape"] is not None:
            self._escape(found["escape"], found.end())
        else:
            self._group(found)

    def _escape(self, character: str, end: int) -> None:
        if self.in_class and character in "sdwDW" and self._range_begins(end):
            raise BadPattern(f"a range cannot begin with \\{character}; write \\- for a hyphen")
        if character == "s":
            self.output.append(_SPACES if self.in_class else f"[{_SPACES}]")
        elif character == "S" and not self.in_class:
            self.output.append(f"[^{_SPACES}]")
        elif character in _REFUSED_ESCAPES:
            raise BadPattern(f"\\{character} is not supported: {_REFUSED_ESCAPES[character]}")
        else:
            self.output.append("\\" + character)

    def _group(self, found: re.Match[str]) -> None:
        """``(?flags)`` changes the open group, ``(?flags:`` opens another."""
        for flag in (found["flags"] or "") + (found["unset"] or ""):
            if flag in _REFUSED_FLAGS:
                raise BadPattern(f"the flag (?{flag}) is not supported: {_REFUSED_FLAGS[flag]}")
        dot_all = self.dot_all[-1]
        dot_all = ("s" in found["flags"] or dot_all) and "s" not in (found["unset"] or "")
        if found["close"] == ":":
            self.dot_all.append(dot_all)
        else:
            self.dot_all[-1] = dot_all
        self.output.append(found[0])

    def _range_begins(self, position: int) -> bool:
        return self.pattern[position : position + 1] == "-" and self.pattern[
            position + 1 : position + 2
        ] not in {"]", ""}

    def _plain(self, character: str, position: int) -> None:
        match character:
            case "[":
                self.in_class = self.class_start = True
            case "(":
                self.dot_all.append(self.dot_all[-1])
            case ")" if len(self.dot_all) > 1:
                self.dot_all.pop()
            case "." if not self.dot_all[-1]:
                character = f"[^{_LINE_ENDS}]"
            case "$":
                self._check_dollar(position)
                character = _AT_END
        self.output.append(character)

    def _in_class(self, character: str, position: int) -> None:
        at_start, self.class_start = self.class_start, False
        if character == "]":
            if at_start:
                raise BadPattern("a class [...] is empty; write \\] for a bracket in it")
            self.in_class = False
        elif character == "^" and self.pattern[position - 1] == "[" and at_start:
            self.class_start = True
        elif character == "[":
            raise BadPattern("a [ inside a class is not supported; write \\[ for a bracket")
        elif self.pattern.startswith("&&", position):
            raise BadPattern("&& inside a class is not supported; write \\& for the character")
        self.output.append(character)

    def _check_dollar(self, position: int) -> None:
        """Refuse a $ that is not at the end of the pattern or of an alternative."""
        open_groups = len(self.dot_all) - 1
        ends = rf"(?:(?:\|[^()\\\[\]]*)?\)){{{open_groups}}}(?:\|.*)?"
        if not re.fullmatch(ends, self.pattern[position + 1 :], re.DOTALL):
            raise BadPattern("$ is supported only at the end of a pattern or of an alternative")
