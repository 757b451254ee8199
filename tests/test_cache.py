"""The object cache and what loads from it: never wrong, never in the way."""

from __future__ import annotations

import errno
import os
import pwd
import stat
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from softgen.cache import Cache, checksum, default_folder, shared_objects, user_folder
from softgen.errors import SoftgenError, Unsupported
from softgen.lanes.compile import jit
from softgen.lanes.compile.routine import Routine
from softgen.lanes.compile.signature import Lanes, Signature, build
from softgen.lanes.machine import Machine
from softgen.lanes.types import f32
from softgen.lanes.value import Value
from tests.conftest import ROOT

SIGNATURE = Signature((Lanes(f32, 8),), (Lanes(f32, 8),))
COUNT = np.arange(8, dtype=np.float32)


def double(m: Machine, a: Value) -> Value:
    return a + a


def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was compiled from now on."""
    made: list[str] = []
    compile_object = jit.compile_object

    def counted(ir: str, target: jit.Target) -> bytes:
        made.append(ir)
        return compile_object(ir, target)

    monkeypatch.setattr(jit, "compile_object", counted)
    return made


def check(cache: Cache) -> None:
    assert Routine(double, SIGNATURE, cache)(COUNT)[0].tolist() == (COUNT + COUNT).tolist()


def test_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = compilations(monkeypatch)
    cache = Cache(tmp_path / "deep" / "objects")
    check(cache)
    check(cache)
    assert len(made) == 1
    entry, = (tmp_path / "deep" / "objects").iterdir()
    assert entry.stat().st_mode & 0o777 == 0o600 and entry.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "folder", "full folder", "text", "pipe", "socket", "link", "dangling link"])
def test_damage_costs_one_compilation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    cache = Cache(tmp_path / "objects")
    check(cache)
    made = compilations(monkeypatch)
    entry, = (tmp_path / "objects").iterdir()
    raw = bytearray(entry.read_bytes())
    raw[len(raw) // 2] ^= 1
    if content := {"flipped": bytes(raw), "cut": bytes(raw[:100]), "text": b"x" * 4000}.get(damage, b""):
        entry.write_bytes(content)
    else:
        replace_entry(entry, damage, tmp_path)
    check(cache)
    assert len(made) == 1
    check(cache)
    assert len(made) == 1, "the object was not replaced"


def replace_entry(entry: Path, kind: str, folder: Path) -> None:
    """Something else where the object was."""
    whole = entry.read_bytes()
    entry.unlink()
    match kind:
        case "empty":
            entry.touch()
        case "folder" | "full folder":
            entry.mkdir()
            if kind != "folder":
                (entry / "file").touch()
        case "pipe":
            os.mkfifo(entry)
        case "socket":
            os.mknod(entry, stat.S_IFSOCK | 0o600)
        case _:
            (folder / "elsewhere").write_bytes(whole)
            entry.symlink_to(folder / ("elsewhere" if kind == "link" else "nothing"))


def test_a_file_that_was_moved_to_another_key_is_a_miss(tmp_path: Path) -> None:
    """The checksum covers the key."""
    cache = Cache(tmp_path / "objects")
    cache.save("one", b"code")
    (tmp_path / "objects" / "one").rename(tmp_path / "objects" / "other")
    assert cache.load("other") is None and not list((tmp_path / "objects").iterdir())


@pytest.mark.parametrize("key", ["", ".", "..", "../outside", ".new-x", "a/b", "a\0b", "x" * 300])
def test_no_key_leads_out_of_the_folder(tmp_path: Path, key: str) -> None:
    cache = Cache(tmp_path / "objects")
    cache.save("a", b"code")
    (tmp_path / "outside").write_bytes(checksum(key, b"code") + b"code")
    cache.save(key, b"other code")
    assert cache.load(key) is None
    cache.remove(key)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "objects", "outside"]


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[1, 2]", b"null", b'{"a": {}}', b"[" * 100_000])
def test_json_of_another_shape_is_a_miss(tmp_path: Path, data: bytes) -> None:
    cache = Cache(tmp_path / "objects")
    cache.save("key", data)
    assert cache.load_json("key", lambda found: found["a"].strip()) is None
    assert not list((tmp_path / "objects").iterdir())
    cache.save("key", b'{"a": " x "}')
    assert cache.load_json("key", lambda found: found["a"].strip()) == "x"


def test_an_object_of_no_use_is_made_again(tmp_path: Path) -> None:
    """Its sum is right and its contents are not: another function under this key."""
    cache = Cache(tmp_path / "objects")
    other = build(double, Signature(SIGNATURE.inputs, SIGNATURE.outputs, name="other"))
    key = jit.key(build(double, SIGNATURE), jit.host())
    cache.save(key, jit.compile_object(other, jit.host()))
    check(cache)


@pytest.mark.parametrize("data", [b"", b"text", b"\x7fELF", b"\x7fELF\2\1" + bytes(100), b"\x7fELF\2\1" + b"\xff" * 200])
def test_what_is_no_object_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    cache = Cache(tmp_path / "objects")
    cache.save(jit.key(build(double, SIGNATURE), jit.host()), data)
    made = compilations(monkeypatch)
    check(cache)
    check(cache)
    assert len(made) == 1


def test_a_cached_object_that_calls_a_library_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, ir = Cache(tmp_path / "objects"), "define double @f(double %x) {\n ret double %x\n}"
    calls = "declare double @cosh(double)\ndefine double @f(double %x) {\n %y = call double @cosh(double %x)\n ret double %y\n}"
    cache.save(jit.key(ir, jit.host()), jit.compile_object(calls, jit.host()))
    made = compilations(monkeypatch)
    jit.load(ir, ("f",), cache)
    assert made == [ir]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    check(Cache(tmp_path / "objects"))


def test_a_folder_on_a_read_only_file_system_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing there can be marked as used, or removed."""
    cache = Cache(tmp_path / "objects")
    cache.save("key", b"data")

    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "utime", read_only)
    assert cache.load("key") == b"data"


def test_no_folder_at_all(tmp_path: Path) -> None:
    check(Cache(None))
    (tmp_path / "file").write_text("")
    check(Cache(tmp_path / "file" / "objects"))
    check(Cache(Path("/proc/softgen/objects")))


def test_a_folder_others_can_write_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "objects"
    cache = Cache(folder)
    cache.save("key", b"code")
    folder.chmod(0o777)
    assert cache.load("key") is None
    cache.save("other", b"code")
    folder.chmod(0o700)
    assert cache.load("key") == b"code" and cache.load("other") is None
    (tmp_path / "link").symlink_to(folder)
    assert Cache(tmp_path / "link").load("key") is None


def test_the_oldest_go_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "objects", largest=1000)
    for number, key in enumerate("abc"):
        cache.save(key, bytes(200))
        os.utime(tmp_path / "objects" / key, (number, number))
    assert cache.load("a") == bytes(200)                # used just now: b is the oldest
    cache.save("d", bytes(300))
    assert sorted(path.name for path in (tmp_path / "objects").iterdir()) == ["a", "c", "d"]
    cache.save("large", bytes(2000))
    assert cache.load("large") is None and cache.load("d") == bytes(300)


def test_small_files_do_not_make_it_look_through_the_folder_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, looks = Cache(tmp_path / "objects", largest=1 << 16), list[int]()
    monkeypatch.setattr(cache, "_shrink", lambda: looks.append(1))
    for number in range(512):
        cache.save(str(number), bytes(128))     # all that it may hold
    assert 16 < len(looks) < 256


def test_code_that_a_form_describes_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made, ir = list[str](), "define i64 @one() { ret i64 1 }"
    for form in (("a", 1), ("a", 1), ("a", 2)):
        code = jit.load_form(form, lambda: made.append(ir) or ir, ("one",))  # type: ignore[func-returns-value]
        assert code.address("one")
    assert len(made) == 2 and jit.has_form(("a", 1), ("one",)) and not jit.has_form(("a", 3), ("one",))
    monkeypatch.setattr(jit, "source_fingerprint", lambda: "other sources")
    assert not jit.has_form(("a", 1), ("one",))


def test_many_writers(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "objects", largest=5000)

    def work(number: int) -> None:
        for turn in range(30):
            key = str((number + turn) % 7)
            cache.save(key, key.encode() * 900)
            assert cache.load(key) in (None, key.encode() * 900)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(path.stat().st_size for path in (tmp_path / "objects").iterdir()) <= 5000


def test_the_key_names_everything_an_object_was_made_from() -> None:
    host, plain = jit.host(), jit.Target(jit.host().triple, "x86-64-v3", "")
    keys = {jit.key(ir, target) for ir in ("a", "b") for target in (host, plain, host._replace(features=host.features + ",-avx512f"))}
    assert len(keys) == 6


def test_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert default_folder() == Path("/somewhere/softgen/objects")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")            # XDG: must be absolute, else ignored
    monkeypatch.setenv("HOME", "/home/me")
    assert default_folder() == Path("/home/me/.cache/softgen/objects")


@pytest.mark.parametrize("home", ["", "relative", None])
def test_without_a_usable_home_it_is_in_the_one_the_system_knows(home: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty HOME is not the root directory; a process whose user has no entry keeps nothing, and does not make a folder named ~."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False) if home is None else monkeypatch.setenv("HOME", home)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_dir="/home/me"))
    assert default_folder() == Path("/home/me/.cache/softgen/objects")
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: {}[uid])
    cache = Cache(default_folder())
    cache.save("key", b"data")
    assert user_folder("XDG_CACHE_HOME", ".cache") is None and cache.load("key") is None


def test_ir_that_llvm_refuses() -> None:
    with pytest.raises(SoftgenError, match="IR that LLVM refuses"):
        jit.load("define i64 @f() { ret i64 %x }", ("f",), Cache(None))


def test_a_host_without_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "_NEEDED", {jit.host().triple.split("-")[0]: ("imaginary",)})
    with pytest.raises(Unsupported, match="needs a CPU with imaginary"):
        jit.host.__wrapped__()
    monkeypatch.setattr(jit, "_NEEDED", {})
    with pytest.raises(Unsupported, match="the NumPy machine works everywhere"):
        jit.host.__wrapped__()


@pytest.mark.parametrize("capabilities, half", [(1 << 10, True), (0xFFFF_FFFF_FFFF_FFFF & ~(1 << 10), False), (1 << 10 | 1 << 9, True)])
def test_arithmetic_of_16_bit_floats_is_bit_10_of_arm_capabilities(capabilities: int, half: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """HWCAP_ASIMDHP of the auxiliary vector's entry 16, AT_HWCAP (Linux, uapi/asm/hwcap.h)."""

    def getauxval(entry: int) -> int:
        return {16: capabilities}[entry]

    monkeypatch.setattr(jit.ctypes, "CDLL", lambda name: SimpleNamespace(getauxval=getauxval))
    assert jit._has_half_arithmetic() is half


def damaged_objects(data: bytes) -> Iterator[bytes]:
    """An object with zeros, ones or other numbers in place of each header, of each of its fields, and of each part of its contents."""
    start, size, count = struct.unpack_from("<Q", data, 0x28)[0], *struct.unpack_from("<HH", data, 0x3A)
    ranges = [(start + index * size, size) for index in range(count)]
    ranges += [(at, 4) for at in range(start, start + size * count, 4)]
    ranges += [(at, width) for width in (8, 64, 256) for at in range(16, len(data), width)]
    for at, width in ranges:
        for fill in (b"\0", b"\xff", b"\x01"):
            yield data[:at] + fill * min(width, len(data) - at) + data[at + width :]


def load_damaged_objects() -> None:
    def constants(m: Machine, a: Value) -> Value:
        return a + m.constant(f32, list(range(8)), 8)

    found = set()
    for number, data in enumerate(damaged_objects(jit.compile_object(build(constants, SIGNATURE), jit.host()))):
        print(number, flush=True)
        try:
            found.add(jit.LoadedCode(data, (SIGNATURE.name,)))
        except SoftgenError:
            found.add(None)
    assert None in found and len(found) > 1


def test_no_object_in_the_cache_ends_the_process(tmp_path: Path) -> None:
    """Headers and relocations that LLVM's linker does not expect are found before it sees them: it would call abort()."""
    code = "from tests.test_cache import load_damaged_objects; load_damaged_objects()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-10:] + done.stderr[-2000:]


@pytest.fixture
def fresh_shared_objects() -> Iterator[None]:
    shared_objects.cache_clear()
    yield
    shared_objects.cache_clear()


@pytest.mark.usefixtures("fresh_shared_objects")
def test_a_team_shares_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that one has compiled, the other loads; the shared folder is not written to."""
    own, shared = Cache(tmp_path / "one"), tmp_path / "shared"
    check(own)
    own.save("text", b"kept")
    monkeypatch.setenv("SOFTGEN_SHARED_CACHE", own.export(shared))
    shared_objects.cache_clear()  # a process looks once
    before = sorted((path.name, path.stat().st_mtime_ns) for path in shared.iterdir())
    made, other = compilations(monkeypatch), Cache(tmp_path / "two")
    check(other)
    assert not made and other.load("text") == b"kept" and other.load("nothing") is None and other.load("index") is None
    assert sorted((path.name, path.stat().st_mtime_ns) for path in shared.iterdir()) == before
    other.save("text", b"newer")
    assert other.load("text") == b"newer"


@pytest.mark.usefixtures("fresh_shared_objects")
@pytest.mark.parametrize("damage", ["object", "swapped", "added", "index", "sum", "gone", "relative"])
def test_shared_objects_that_were_changed_are_not_used(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, shared = Cache(tmp_path / "one"), tmp_path / "shared"
    for key in ("first", "second"):
        own.save(key, key.encode())
    place = own.export(shared)
    evil = (shared / "second").read_bytes()
    match damage:
        case "object":
            (shared / "first").write_bytes(evil[:-1] + b"x")
        case "swapped":
            (shared / "first").write_bytes(evil)
        case "added":
            (shared / "third").write_bytes(checksum("third", b"evil") + b"evil")
        case "index":
            with open(shared / "index", "a") as index:
                index.write("0  third\n")
        case "sum":
            place = place[:-1] + ("0" if place[-1] != "0" else "1")
        case "gone":
            place = place.replace("shared", "nowhere")
        case "relative":
            place = place.lstrip("/")
    monkeypatch.setenv("SOFTGEN_SHARED_CACHE", place)
    other = Cache(tmp_path / "two")
    loaded = {key: other.load(key) for key in ("first", "second", "third")}
    good = {"object": ["second"], "swapped": ["second"], "added": ["first", "second"]}.get(damage, [])
    assert loaded == {key: key.encode() if key in good else None for key in loaded}
