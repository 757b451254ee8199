"""LLVM IR compiled at O1 for this host, kept in the object cache, and loaded by ORC.

llvmlite is imported on first use and costs about a tenth of a second.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import os
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from softgen.cache import Cache, default_folder
from softgen.errors import SoftgenError, Unsupported
from softgen.lanes import host_function
from softgen.lanes.compile import elf_object, page_release
from softgen.lanes.compile.in_flight import InFlight
from softgen.lanes.compile.source_fingerprint import source_fingerprint

VERSION = 2                         # of what is done to IR here: part of the key
OPTIMIZE, GENERATE = 1, 2           # levels of the passes and of the code generator; more of either gains nothing
# Kernels are ordered for instruction-level parallelism. LLVM's machine scheduler orders for register pressure: long kernels then take up to
# twice the time, and none is faster.
OPTIONS = ("-enable-misched=0",)
# CPU features for which LLVM would otherwise emit library calls.
_AT_HWCAP = 16
_NEEDED = {"x86_64": ("fma", "avx2", "f16c"), "aarch64": ()}


class Target(NamedTuple):
    """Target of code generation; all modules of a process share one."""

    triple: str
    cpu: str
    features: str

    def has(self, feature: str) -> bool:
        """Whether the feature is named; features implied by the CPU's name do not count."""
        return f"+{feature}" in self.features.split(",") and f"-{feature}" not in self.features.split(",")


_pages = page_release.LibraryPages()  # LLVM's
in_flight = InFlight()  # work of LLVM


@cache
def _llvm() -> Any:
    import llvmlite.binding as llvm  # type: ignore[import-untyped]
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for option in OPTIONS:
        llvm.set_option("softgen", option)
    from llvmlite.binding import ffi

    _pages.library = os.path.realpath(ffi.lib._name)  # as the process has it in its list of mappings
    _pages.release()
    in_flight.wait_at_exit()
    in_flight.lock = getattr(ffi.lib, "_lock", in_flight.lock)  # of its own calls
    return llvm


@cache
def host() -> Target:
    llvm = _llvm()
    triple, features = llvm.get_process_triple(), llvm.get_host_cpu_features()
    kind = triple.split("-")[0]
    if kind not in _NEEDED:
        raise Unsupported(f"compiled code for {kind}: must be one of {' '.join(_NEEDED)}; the NumPy machine works everywhere")
    if lacking := [feature for feature in _NEEDED[kind] if not features.get(feature)]:
        raise Unsupported(f"compiled code needs a CPU with {' '.join(lacking)}; the NumPy machine works everywhere")
    more = ",-prefer-256-bit" if features.get("avx512f") else ",+fullfp16" if kind == "aarch64" and _has_half_arithmetic() else ""
    return Target(triple, llvm.get_host_cpu_name(), features.flatten() + more)


def _has_half_arithmetic() -> bool:
    """Whether an aarch64 CPU computes with vectors of 16-bit floats: HWCAP_ASIMDHP, which LLVM's list of features leaves out."""
    library = ctypes.CDLL(None)
    library.getauxval.restype, library.getauxval.argtypes = ctypes.c_ulong, (ctypes.c_ulong,)
    return bool(library.getauxval(_AT_HWCAP) >> 10 & 1)


_machines = threading.local()


def _target_machine(target: Target) -> Any:
    """The code generator of this host thread."""
    known = vars(_machines).setdefault("known", {})
    if target not in known:
        known[target] = _llvm().Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=target.features, opt=GENERATE, jit=True, codemodel="small", reloc="pic")
    return known[target]


@cache
def _unlocked() -> ctypes.CDLL:
    """The two calls into LLVM that take long, without llvmlite's lock: with it, a host thread that only loads code would wait for another
    one that compiles. Each compilation has a context, a target machine and passes of its own, which is what LLVM asks for."""
    from llvmlite.binding import ffi

    native = ctypes.CDLL(ffi.lib._name)
    native.LLVMPY_RunNewModulePassManager.argtypes = (ctypes.c_void_p,) * 3
    native.LLVMPY_RunNewModulePassManager.restype = None
    native.LLVMPY_TargetMachineEmitToMemory.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p))
    native.LLVMPY_TargetMachineEmitToMemory.restype = ctypes.c_void_p
    native.LLVMPY_GetBufferStart.argtypes, native.LLVMPY_GetBufferStart.restype = (ctypes.c_void_p,), ctypes.c_void_p
    native.LLVMPY_GetBufferSize.argtypes, native.LLVMPY_GetBufferSize.restype = (ctypes.c_void_p,), ctypes.c_size_t
    native.LLVMPY_DisposeMemoryBuffer.argtypes, native.LLVMPY_DisposeMemoryBuffer.restype = (ctypes.c_void_p,), None
    return native


def parse(ir: str) -> Any:
    """A module in a context of its own."""
    llvm = _llvm()
    try:
        module = llvm.parse_assembly(ir, llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise SoftgenError(f"IR that LLVM refuses: {error}") from None
    return module


def generate(module: Any, passes: Any, builder: Any, machine: Any) -> bytes:
    """Run passes over a module, and make an object of it."""
    native, why = _unlocked(), ctypes.c_char_p()
    native.LLVMPY_RunNewModulePassManager(passes, module, builder)
    _pages.used()
    buffer = native.LLVMPY_TargetMachineEmitToMemory(machine, module, 1, ctypes.byref(why))
    if not buffer:
        raise SoftgenError(f"LLVM made no object: {(why.value or b'').decode(errors='replace')}")
    try:
        return ctypes.string_at(native.LLVMPY_GetBufferStart(buffer), native.LLVMPY_GetBufferSize(buffer))
    finally:
        native.LLVMPY_DisposeMemoryBuffer(buffer)


@cache
def _linker() -> Any:
    return _llvm().create_lljit_compiler(use_jit_link=True)     # code and constants in one piece: the small code model holds


_names = itertools.count()
_lock = threading.Lock()


def key(ir: str, target: Target) -> str:
    """Cache key of an object: hash of IR, target, LLVM version and options."""
    parts = (str(VERSION), str(_llvm().llvm_version_info), str((OPTIMIZE, GENERATE)), *target, ir)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@in_flight
def compile_object(ir: str, target: Target) -> bytes:
    llvm, module, machine = _llvm(), parse(ir), _target_machine(target)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=OPTIMIZE))
    return generate(module, builder.getModulePassManager(), builder, machine)


def check(data: bytes, names: tuple[str, ...], imports: dict[str, int] | None = None) -> None:
    """Refuses an object with undefined symbols other than `imports`: ORC would resolve them in this process, and a library's function
    does not match ours bit for bit."""
    _check_undefined(elf_object.symbols(data).undefined, names, imports)


def _check_undefined(undefined: set[str], names: tuple[str, ...], imports: dict[str, int] | None) -> None:
    if strange := sorted(undefined - set(imports or ())):
        raise Unsupported(f"{' '.join(names)}: LLVM made calls of {' '.join(strange)} out of operations this CPU has no instruction for")


@in_flight
def _link(data: bytes, names: tuple[str, ...], imports: dict[str, int]) -> Any:
    library = _llvm().JITLibraryBuilder().add_object_img(data)
    for name in names:
        library.export_symbol(name)
    for name, place in imports.items():
        library.import_symbol(name, place)
    with _lock:
        return library.link(_linker(), f"lanes{next(_names)}")


class LoadedCode:
    """Loaded code; addresses are valid for as long as this lives. A SoftgenError where the object does not define all names, or uses
    symbols other than `imports`: one out of the cache may be anything."""

    def __init__(self, data: bytes, names: tuple[str, ...], imports: dict[str, int] | None = None) -> None:
        symbols = elf_object.symbols(data)
        if lacking := set(names) - symbols.functions:
            raise SoftgenError(f"{' '.join(sorted(lacking))}: the object does not define it")
        imports = {**host_function.addresses(symbols.undefined), **(imports or {})}
        _check_undefined(symbols.undefined, names, imports)
        _pages.used()
        try:
            self._tracker = _link(data, names, imports)
        except RuntimeError as error:
            raise SoftgenError(f"{' '.join(names)} cannot be linked: {error}") from None

    def address(self, name: str) -> int:
        return int(self._tracker[name])


def load(ir: str, names: tuple[str, ...], cache: Cache | None = None, target: Target | None = None,
         imports: dict[str, int] | None = None) -> LoadedCode:
    """The functions of a module, from the cache or compiled now. `imports` are the only undefined symbols it may have."""
    cache = Cache(default_folder()) if cache is None else cache
    target = target or host()
    name = key(ir, target)
    data = cache.load(name)
    if data is not None:
        try:
            return LoadedCode(data, names, imports)
        except SoftgenError:
            pass                                        # not the object of this IR: compiled again, and replaced
    data = compile_object(ir, target)
    code = LoadedCode(data, names, imports)
    cache.save(name, data)
    return code


def load_form(form: object, text: Callable[[], str], names: tuple[str, ...], imports: dict[str, int] | None = None) -> LoadedCode:
    """The functions that `form` describes completely (its repr), from the cache without making their IR, or compiled now."""
    cache, target = Cache(default_folder()), host()
    name = key(f"{source_fingerprint()} {names} {form!r}", target)
    data = cache.load(name)
    if data is not None:
        try:
            return LoadedCode(data, names, imports)
        except SoftgenError:
            pass
    data = compile_object(text(), target)
    code = LoadedCode(data, names, imports)
    cache.save(name, data)
    return code


def has_form(form: object, names: tuple[str, ...]) -> bool:
    """Whether they were compiled before."""
    return Cache(default_folder()).load(key(f"{source_fingerprint()} {names} {form!r}", host())) is not None
