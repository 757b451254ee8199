"""softgen.Probe: accesses and counts of kernels as NumPy arrays."""

import numpy as np

import softgen
from softgen.inspect.profile.probe import Rows
from softgen.position import Position
from tests.conftest import ROOT

COMPUTE, TRIANGLE = (ROOT / "tests/data" / name for name in ("kbl-vk-compute", "kbl-vk-tri"))


class Everything(softgen.Probe):
    def __init__(self) -> None:
        self.rows: list[Rows] = []
        self.begun: list[str] = []
        self.counts: dict[str, Rows] = {}

    def begin(self, position: Position, name: str) -> None:
        self.begun.append(f"{position} {name}")

    def accesses(self, rows: Rows) -> None:
        self.rows.append(rows)

    def executed(self, position: Position, rows: Rows) -> None:
        self.counts[str(position)] = rows


def test_accesses_are_rows_of_lanes_and_addresses() -> None:
    probe = Everything()
    softgen.open(COMPUTE).probe(probe)
    assert probe.begun == ["2:17 GPGPU_WALKER"]
    rows = np.concatenate(probe.rows)
    stores = rows[rows["write"]]
    assert len(rows) == 3 * 64 and len(stores) == 64 and set(stores["offset"]) == {0x98} and set(rows["size"]) == {4}
    assert stores["lane"].tolist() == list(range(16)) * 4
    assert np.diff(np.sort(stores["address"])).tolist() == [4] * 63
    (kernel,) = probe.kernels.values()
    assert kernel.text(0x98).startswith("sends") and len(kernel.code) == 192
    counts = probe.counts["2:17"]
    assert counts["executed"].tolist() == [4] * 15 and int(counts["lanes"].sum()) == 864


class Counts(softgen.Probe):
    def __init__(self) -> None:
        self.total: dict[str, int] = {}

    def executed(self, position: Position, rows: Rows) -> None:
        self.total[str(position)] = int(rows["executed"].sum())


def test_counts_alone_leave_messages_compiled() -> None:
    probe = Counts()
    softgen.open(TRIANGLE).probe(probe)
    assert probe.total == {"2:70": 0, "2:124": 488, "2:190": 0, "2:245": 3072}
