"""How kernels are compiled: by numba's compiler, without what they do not need and nothing twice.

numba optimises every function and makes machine code of it, and then does both again in each
function that calls it. Here a part of a kernel waits until it is in a kernel, and a kernel is
optimised once. Of numba's passes over its own representation of a function, those are left out
that look for what is in no kernel: closures, blocks of `with`, array expressions, literals.
"""

from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]  # written in C
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, _LowerResult
from numba.core.compiler_machinery import PassManager, _pass_registry, register_pass
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import (
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    TranslateByteCode,
)


class KernelLibrary(JITCodeLibrary):
    """The code of one kernel, optimised once."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout  # noqa: SLF001 - as numba's does

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()  # noqa: SLF001 - as numba's does
        passes.run(self._final_module, builder)


class PartLibrary(KernelLibrary):
    """The code of a part of kernels, which they take as it is."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):
    """Makes the code of a part, but no function that could be called."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        state.flags.no_compile = True
        super().run_pass(state)
        made, name = state["cr"], state.func_id.func_name
        entry = _dynfunc.make_function(
            made.fndesc.lookup_module(), name, "a part of kernels", 0, made.env, (state.library,)
        )
        state["cr"] = _LowerResult(made.fndesc, made.call_helper, cfunc=entry, env=made.env)
        state.targetctx.insert_user_function(entry, made.fndesc, [state.library])
        return True


class KernelPasses(PassManager):
    """The passes of a kernel, without numba's repairs and measurements after each of them."""

    def run(self, state: Any) -> None:
        for step, _ in self.passes:
            one: Any = _pass_registry.get(step).pass_inst
            one.analysis = self._analysis
            one.run_pass(state)


_known: dict[Any, Any] = {}  # signatures of operators and functions of numba


class RememberedTypes:
    """numba's knowledge of types, with what operators make of types looked up once.

    numba tries all meanings of an operator wherever it occurs, several times.
    """

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, args: Any, keywords: Any) -> Any:
        """The signature of a function for types of arguments, None if it does not take them."""
        key = function, args
        if key in _known and not keywords:
            return _known[key]
        found = self._context.resolve_function_type(function, args, keywords)
        if isinstance(function, types.Function) and found is not None and not keywords:
            _known[key] = found
        return found


class KernelCompiler(CompilerBase):
    """Compiles a kernel."""

    library: Any = KernelLibrary
    lowering: Any = NativeLowering

    def define_pipelines(self) -> list[PassManager]:
        codegen = self.state.targetctx.codegen()
        self.state.library = self.library(codegen, self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        self.state.typingctx = RememberedTypes(self.state.typingctx)
        found = KernelPasses("kernel")
        for step in (
            TranslateByteCode, FixupArgs, IRProcessing, GenericRewrites, ReconstructSSA,
            NopythonTypeInference, PreLowerStripPhis, IRLegalization, self.lowering,
            NoPythonBackend,
        ):  # fmt: skip
            found.add_pass(step, step.__name__)
        found.finalize()
        return [found]


class PartCompiler(KernelCompiler):
    """Compiles a part of kernels."""

    library = PartLibrary
    lowering = PartLowering
