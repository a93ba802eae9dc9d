"""Kernels are compiled in the background once, and the thread ends when it is told to."""

import threading
from types import SimpleNamespace

import pytest

from tamis.engines import rehearsal
from tamis.engines.preparation import Preparation
from tamis.engines.sliced import threads
from tamis.kernels import kernel_cache
from tamis.kernels.compilations import compilations

OURS = SimpleNamespace(py_func=SimpleNamespace(__module__="tamis.kernels.bits"))


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """The only place where kernels are kept, and nobody counts what is compiled here."""
    monkeypatch.setattr(kernel_cache, "_PLACES", (lambda: tmp_path,))
    monkeypatch.setattr(compilations, "count", 0)
    kernel_cache.usual_folder.cache_clear()
    yield tmp_path / kernel_cache.content_key()
    kernel_cache.usual_folder.cache_clear()


def compile_something():
    event = SimpleNamespace(data={"dispatcher": OURS})
    try:
        compilations.on_start(event)
    finally:
        compilations.on_end(event)


def test_it_is_done_once(monkeypatch, folder):
    go, calls = threading.Event(), []

    def rehearse():
        calls.append(None)
        go.wait()

    monkeypatch.setattr(rehearsal, "rehearse_matching", rehearse)
    preparation = Preparation("matching")
    assert not preparation.is_done()
    assert calls == []
    preparation.start()
    preparation.start()
    assert not preparation.is_done()
    go.set()
    preparation.wait()
    assert preparation.is_done()
    assert (folder / "matching.done").exists()
    assert Preparation("matching").is_done()  # as in another process
    assert len(calls) == 1


def test_a_rehearsal_starts_no_threads(monkeypatch):
    # A process that ends meanwhile would say that none can be started any more.
    monkeypatch.setattr(threads, "ThreadPoolExecutor", None)
    rehearsal.rehearse_batches()


@pytest.mark.usefixtures("folder")
def test_it_can_be_stopped_and_started_again(monkeypatch):
    running = threading.Event()

    def rehearse():
        while True:
            compile_something()
            running.set()

    monkeypatch.setattr(rehearsal, "rehearse_matching", rehearse)
    preparation = Preparation("matching")
    preparation.stop()
    preparation.start()
    assert not preparation.is_done()
    running.wait()
    preparation.stop()
    assert "tamis-compiling" not in {thread.name for thread in threading.enumerate()}
    monkeypatch.setattr(rehearsal, "rehearse_matching", compile_something)
    preparation.wait()
    assert preparation.is_done()


@pytest.mark.usefixtures("folder")
def test_what_fails_is_said_and_not_tried_again(monkeypatch, caplog):
    def rehearse():
        raise RuntimeError("no compiler")

    monkeypatch.setattr(rehearsal, "rehearse_matching", rehearse)
    preparation = Preparation("matching")
    preparation.wait()
    assert preparation.is_done()
    assert "no compiler" in caplog.text
