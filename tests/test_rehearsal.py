"""Rehearsals call the kernels, so that next to nothing is left to compile after `tamis warm`."""

import os
from importlib import import_module
from pathlib import Path

import pytest

import tamis.kernels
from tamis.kernels.kernel_cache import KernelCache
from tamis.rehearsal import REHEARSALS

# Called by tools for diagrams, by a comparison with the papers' linear scans, or for trees of a
# size that a rehearsal does not reach.
RARE = {
    "bdd_nodes.make_node", "bdd_nodes.rehash_nodes", "bdd_operations.apply",
    "bdd_operations.restrict", "growing_tree.process_sub_levels", "linear_scan.scan_conjunctions",
    "tree_match.decide_elements", "tree_match.mark_values",
}  # fmt: skip


@pytest.mark.long
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_every_kernel_is_called():
    for rehearse in REHEARSALS.values():
        rehearse()
    modules = [path.stem for path in Path(tamis.kernels.__file__).parent.glob("*.py")]
    never = {
        f"{name}.{kernel}"
        for name in modules
        for kernel, of in vars(import_module(f"tamis.kernels.{name}")).items()
        if isinstance(getattr(of, "_cache", None), KernelCache)
        and of.py_func.__module__ == f"tamis.kernels.{name}"
        and not of.signatures
    }
    assert never <= RARE
