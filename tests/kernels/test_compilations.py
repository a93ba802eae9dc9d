"""Compilations are counted, and announced on a terminal only."""

import gc
import io
from types import SimpleNamespace

import pytest

from cases import each
from tamis.kernels.compilations import NOTICE, Compilations

OURS, FOREIGN = "tamis.kernels.bits", "somebody.else"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def event(module):
    function = SimpleNamespace(__module__=module)
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})


def compile_one(listener, module, inside=()):
    listener.on_start(event(module))
    for other in inside:
        compile_one(listener, other)
    listener.on_end(event(module))


@each("stream", [Terminal, io.StringIO, None])
def test_the_notice(stream):
    """One line, which is removed afterwards; only where somebody can see it."""
    written = stream and stream()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stderr", written)
        counted = Compilations()
        compile_one(counted, OURS, inside=[OURS, OURS])
        compile_one(counted, FOREIGN)
    assert counted.count == 1
    assert counted.seconds > 0
    if written is not None:
        assert written.getvalue() == (f"{NOTICE}\r\x1b[K" if stream is Terminal else "")
    assert "\n" not in NOTICE


@each("enabled", [True, False])
def test_garbage_is_not_collected_while_compiling(enabled):
    """And is collected afterwards as it was before."""
    before = gc.isenabled()
    seen = []
    try:
        (gc.enable if enabled else gc.disable)()
        counted = Compilations()
        counted.on_start(event(OURS))
        compile_one(counted, OURS)
        seen.append(gc.isenabled())
        counted.on_end(event(OURS))
        seen.append(gc.isenabled())
    finally:
        (gc.enable if before else gc.disable)()
    assert seen == [False, enabled]
