"""What C and Python share: modules made of headers (tools/structures.py), and that a field which moves is noticed."""

import ctypes
import importlib.util
import re
import shutil
import subprocess
import sys
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from softgen import library
from softgen.errors import SoftgenError
from softgen.inspect.cli import main
from softgen.memory import guard_h
from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import structures  # type: ignore[import-not-found]

COMPILER = "gcc"
needs_compiler = pytest.mark.skipif(not shutil.which(COMPILER), reason="gcc is absent")
HEADERS = [Path(header) for header in structures.HEADERS]


def module_of(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made(folder: Path, text: str) -> Any:
    """The module of a header with this text."""
    (folder / "sample.h").write_text(text)
    structures.write(folder, Path("sample.h"), [COMPILER], folder)
    return module_of(folder / "sample_h.py")


def c_name(name: str) -> str:
    """What C calls a class: fault_record for FaultRecord."""
    if found := next((given for given, python in structures.NAMES.items() if python == name), None):
        return found
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)[1:]


def checks(module: ModuleType) -> list[str]:
    """C that compiles only where structures and constants are as a module has them."""
    found = []
    for name, value in vars(module).items():
        if isinstance(value, int):
            found.append(f"{name} == {value}")
        elif isinstance(value, type) and value.__module__ == module.__name__ and not issubclass(value, IntEnum):
            kind = f"struct {c_name(name)}"
            found.append(f"sizeof({kind}) == {ctypes.sizeof(value)}")
            for field, *_ in value._fields_:  # type: ignore[attr-defined]
                place = getattr(value, field)
                found += [f"offsetof({kind}, {field}) == {place.offset}", f"sizeof((({kind} *)0)->{field}) == {place.size}"]
    return [f'_Static_assert({check}, "{check}");' for check in found]


def complaints(header: Path, module: ModuleType) -> str:
    """What the compiler says of a module that claims to be that of a header."""
    text = "\n".join(['#include "' + str(header) + '"', "#include <stddef.h>", *checks(module)])
    ran = subprocess.run([COMPILER, "-x", "c", "-fsyntax-only", "-"], input=text, capture_output=True, text=True, check=False)
    return ran.stderr


@needs_compiler
@pytest.mark.parametrize("header", HEADERS, ids=str)
def test_a_module_is_as_its_header_is(header: Path) -> None:
    """It was made of the header as it is now, and the compiler has each field where Python has it."""
    path = structures.module_path(ROOT / header)
    assert path.read_text("utf-8") == structures.module_text(ROOT, header, [COMPILER])
    module = importlib.import_module(".".join(structures.module_path(header).with_suffix("").parts))
    assert len(checks(module)) > 0 and complaints(ROOT / header, module) == ""


@needs_compiler
def test_a_field_that_moves_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler refuses the old module, a new one has the field in its new place, and a library is not loaded with the old one."""
    header = tmp_path / "guard.h"
    shutil.copy(ROOT / "softgen" / "memory" / "guard.h", header)
    shutil.copy(guard_h.__file__, tmp_path / "guard_h.py")
    old = module_of(tmp_path / "guard_h.py")
    assert complaints(header, old) == "" and library.load("softgen.memory._guard", old)
    access, origin = "    uint32_t access;\n", "    uint32_t origin;\n"
    header.write_text(header.read_text().replace(access + origin, origin + access))
    assert "offsetof(struct fault_record, access) == 16" in complaints(header, old)
    with pytest.raises(SoftgenError, match=r"_guard\S+ is of another version; build it again"):
        library.load("softgen.memory._guard", old)
    structures.write(tmp_path, Path("guard.h"), [COMPILER], tmp_path)
    new = module_of(tmp_path / "guard_h.py")
    assert complaints(header, new) == "" and library.load("softgen.memory._guard", new)
    assert (new.FaultRecord.origin.offset, new.FaultRecord.access.offset) == (16, 20)


SAMPLE = """
#include <stdint.h>
enum { FIRST = 3, LAST = FIRST * 2, ALL = 0xffffffff }; /* numbers */
/* Why
 * it ended. */
enum end_reason { END_EARLY = -1, END_LATE, /* late */
    END_NEVER = 7 };
typedef int64_t call(void *argument);
struct inner { int8_t low; double high; }; /* one line */
struct unknown;

/* All of
 * it. */
struct all_kinds {
    uint8_t bytes[FIRST];
    char name[4];
    uint16_t grid[2][3]; /* rows */
    const char *text; /* bytes, and
                       * where they are */
    const uint8_t *pointer, *const other;
    char *written;
    call *function;
    struct unknown *later;
    struct inner inners[2];
    enum end_reason reason;
    _Atomic uint64_t shared;
    float real;
    _Bool flag;
};
"""


@needs_compiler
def test_all_kinds_of_fields(tmp_path: Path) -> None:
    module = made(tmp_path, SAMPLE)
    assert complaints(tmp_path / "sample.h", module) == ""
    assert (module.FIRST, module.LAST, module.ALL) == (3, 6, 0xFFFFFFFF)
    assert {item.name: item.value for item in module.EndReason} == {"EARLY": -1, "LATE": 0, "NEVER": 7}
    kinds = dict(module.AllKinds._fields_)
    assert kinds == {
        "bytes": ctypes.c_uint8 * 3, "name": ctypes.c_char * 4, "grid": ctypes.c_uint16 * 3 * 2, "text": ctypes.c_char_p,
        "pointer": ctypes.c_uint64, "other": ctypes.c_uint64, "written": ctypes.c_uint64, "function": ctypes.c_uint64,
        "later": ctypes.c_uint64, "inners": module.Inner * 2, "reason": ctypes.c_int32, "shared": ctypes.c_uint64,
        "real": ctypes.c_float, "flag": ctypes.c_uint8,
    }  # fmt: skip
    comments = [kind.__doc__ for kind in (module.AllKinds, module.Inner, module.EndReason)]
    assert comments == ["All of\n    it.", "one line", "Why\n    it ended."]
    text = (tmp_path / "sample_h.py").read_text()
    assert '"text", ctypes.c_char_p),  # bytes, and where they are\n' in text and "LATE = 0  # late\n" in text


@needs_compiler
def test_a_structure_of_another_header_is_imported(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "inner.h").write_text("struct inner_part { long a, b; };\n")
    (tmp_path / "outer.h").write_text('#include "below/inner.h"\nstruct outer { char c; struct inner_part part; };\n')
    text = structures.module_text(tmp_path, Path("outer.h"), [COMPILER])
    assert "from below.inner_h import InnerPart\n" in text and '("part", InnerPart),' in text and "class InnerPart" not in text


@pytest.mark.parametrize(("text", "complaint"), [
    ("struct a {\n    unsigned low : 3;\n};", r"sample.h:1: bit fields"),
    ("struct a {\n    struct { int x; };\n};", r"sample.h:1: .* fields without a name"),
    ("union u { int x; float y; };", r"sample.h:1: unions"),
    ("struct a {\n    int count;\n    int rest[];\n};", r"an array without a length"),
    ("struct __attribute__((packed)) a {\n    char c;\n    int x;\n};", r"sample.h:3: x is elsewhere in C"),
    ("struct a {\n    int x;\n} __attribute__((aligned(16)));", r"sample.h:1: struct a has another size"),
])  # fmt: skip
@needs_compiler
def test_what_has_no_python_form_ends_the_build(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        made(tmp_path, text)


def test_a_name_that_a_structure_does_not_have_is_an_error() -> None:
    """ctypes would keep it beside the fields."""
    with pytest.raises(AttributeError, match="adress"):
        guard_h.FaultRecord().adress = 1
    with pytest.raises(AttributeError, match="adress"):
        guard_h.FaultRecord(adress=1)


@needs_compiler
def test_libraries_are_built_again_when_any_header_changes_that_they_include(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    sources = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "softgen").rglob("*.c"))
    told = subprocess.run([COMPILER, "-MM", *sources], capture_output=True, text=True, check=True).stdout
    needed = {str(Path(name).resolve().relative_to(ROOT)) for name in told.split() if name.endswith(".h")}
    assert set(structures.included(sources)) == needed


def test_every_header_is_compared_when_a_part_is_loaded() -> None:
    """But shim.h: programs load that part."""
    texts = [path.read_text("utf-8") for path in (ROOT / "softgen").rglob("*.py")]
    calls = [call for text in texts for call in re.findall(r"\bload\w*\(([^()]+)\)", text)]
    compared = {name for call in calls for name in re.findall(r"\b(\w+_h)\b", call)}
    assert compared | {"shim_h"} == {structures.module_path(header).stem for header in HEADERS}


def test_a_tree_that_was_not_built_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    def missing(name: str) -> int:
        return main.guarded(lambda: int(bool(importlib.import_module(name))))

    assert missing("softgen.memory.no_such_h") == 1
    assert "softgen.memory.no_such_h is not built; run `make` or" in capsys.readouterr().err
    with pytest.raises(ModuleNotFoundError):
        missing("softgen.memory.no_such")
