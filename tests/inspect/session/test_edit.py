"""Edits: `softgen replay --set` and `--replace` change what is executed, and nothing on disk."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

from softgen.inspect.cli.main import main
from softgen.inspect.session import Session
from tests.conftest import ROOT

COMPUTE, TRIANGLE = (ROOT / "tests/data" / name for name in ("kbl-vk-compute", "kbl-vk-tri"))


def contents(folder: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.rglob("*.*")))).hexdigest()


def test_a_field_of_a_command_is_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(TRIANGLE)
    assert main(["replay", str(TRIANGLE), "--set", "2:124.vertex_count_per_instance=0"]) == 0
    assert "256 threads" in capsys.readouterr().out  # the triangle's are missing
    assert main(["replay", str(TRIANGLE)]) == 0
    assert "350 threads" in capsys.readouterr().out
    assert contents(TRIANGLE) == before


def test_enumerated_values_have_names_and_groups_indices(capsys: pytest.CaptureFixture[str]) -> None:
    session = Session(COMPUTE, edits=["2:17.simd_size=simd8"])
    session.seek("2:17")
    assert session.event("2:17").fields["simd_size"]["name"] == "simd16"
    topology = [event for event in Session(TRIANGLE).events() if event.name == "3DSTATE_VF_TOPOLOGY"][1].position
    edited = Session(TRIANGLE, edits=[f"{topology}.primitive_topology_type=pointlist"])
    edited.seek("2:124")
    edited.next()
    assert edited.run.gpu.counters.threads < 94


def test_a_kernel_is_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["disasm", str(COMPUTE)]) == 0
    text = capsys.readouterr().out
    (tmp_path / "k.asm").write_text(re.sub(r"(r22\.0<1>:d\s+r13\.0<8;8,1>:d\s+)r15", r"\1r13", text))
    found = []
    for kernels in ([], [f"cs={tmp_path / 'k.asm'}"], [f"0x200000000={tmp_path / 'k.asm'}"]):
        session = Session(COMPUTE, replacements=kernels)
        address = session.thread("2:17/cs/g0.t0+0x98").step().writes[0].address
        session.seek("2:18")
        found.append(np.frombuffer(session.memory(address, 12), np.uint32).tolist())
    assert found == [[0, 1001, 2002], [0, 2, 4], [0, 2, 4]]


@pytest.mark.parametrize(("option", "value", "says"), [
    ("--set", "2:124", "expected SUBMISSION:COMMAND.FIELD=VALUE"),
    ("--set", "2:9999.x=1", "there is no command 2:9999"),
    ("--set", "2:124.nothing=1", "has no field nothing; it has"),
    ("--set", "2:124.vertex_count_per_instance=x", "'x' is no number"),
    ("--set", "2:124.vertex_count_per_instance=0x100000000", "must fit 32 bits"),
    ("--set", "2:124.predicate_enable=7", "must fit 1 bits"),
    ("--replace", "ps", "expected KERNEL=FILE"),
    ("--replace", "ps=nowhere.asm", "No such file"),
])  # fmt: skip
def test_mistakes_are_named(option: str, value: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(TRIANGLE), option, value]) == 2
    assert says in capsys.readouterr().err


def test_a_kernel_that_is_longer_has_no_space(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["disasm", str(TRIANGLE)]) == 0
    (tmp_path / "all.asm").write_text("".join(line for line in capsys.readouterr().out.splitlines(True) if not line.startswith("//")))
    assert main(["replay", str(TRIANGLE), "--replace", f"vs={tmp_path / 'all.asm'}"]) == 2
    assert "there is no space for more" in capsys.readouterr().err
    assert main(["replay", str(TRIANGLE), "--replace", f"gs={tmp_path / 'all.asm'}"]) == 2
    assert "no command points to such a kernel; stages that have kernels: ps vs" in capsys.readouterr().err
