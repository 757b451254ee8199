"""Generations and what they inherit; devices by their names and PCI ids, and what they have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from softgen.bits import generation as module
from softgen.bits.generation import device, device_by_pci, devices, generation, most_of, read_generations
from softgen.errors import SpecError


def test_a_device_is_known_by_its_name_and_by_others() -> None:
    assert {name: device(name).name for name in (*devices(), "icllp")} == {**{name: name for name in devices()}, "icllp": "icl"}
    assert list(devices()) == sorted(devices(), key=lambda name: device(name).generation.number)  # oldest first


@pytest.mark.parametrize("name", ["", "ICL", "icllp2", "moon"])
def test_an_unknown_device_is_refused(name: str) -> None:
    with pytest.raises(SpecError, match=f"no GPU is called {name!r}; there are gm965, g45, g41, ivb, "):
        device(name)


def test_a_device_is_known_by_any_of_its_pci_ids() -> None:
    assert [device_by_pci(number).name for number in (0x8A50, 0x8A52, 0x8A71, 0x5916, 0x0412)] == ["icl", "icl", "icl", "kbl", "hsw"]
    assert all(found.pci_id in found.pci_ids and device_by_pci(found.pci_id) is found for found in devices().values())
    with pytest.raises(SpecError, match="no GPU softgen knows has PCI id 0x8a4f"):
        device_by_pci(0x8A4F)


def test_limits_of_devices() -> None:
    icl = device("icl")
    assert (icl.limit("eus"), icl.limit("timestamp_hz"), icl.aliases) == (64, 12500000, ("icllp",))
    assert not {"title", "pci_id", "pci_ids", "generation", "aliases"} & {name for name, _ in icl.limits}
    with pytest.raises(SpecError, match=r"devices\.toml gives icl no 'moons'"):
        icl.limit("moons")


def test_the_most_that_devices_of_a_generation_have(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [replace(device(name), limits=(("eus", eus),)) for name, eus in (("skl", 24), ("kbl", 72), ("skl", 48), ("icl", 96))]
    monkeypatch.setattr(module, "devices", lambda: dict(enumerate(made)))
    assert [most_of.__wrapped__(generation(gen), "eus") for gen in (9, 11)] == [72, 96]


@pytest.mark.parametrize("number", [6, 10, 12.0])
def test_an_unknown_generation_is_refused(number: float) -> None:
    with pytest.raises(SpecError, match=f"softgen knows generations 4, 4.5, 7, 7.5, 8, 9, 11, not {number:g}"):
        generation(number)


FIRST = {"address_bits": 32, "engines": ["render"]}
TABLES: dict[str, dict[str, Any]] = {
    "4": FIRST, "4.5": {"like": "4"}, "7": {"like": "4.5", "engines": ["render", "blitter"]}, "7.5": {"like": "7"},
    "8": {"like": "7.5", "address_bits": 48}, "9": {"like": "8"}, "11": {"like": "4"},
}  # fmt: skip


def test_generations_inherit_what_they_do_not_say() -> None:
    found = read_generations(TABLES)
    assert list(found) == [4, 4.5, 7, 7.5, 8, 9, 11] == [made.number for made in found.values()]
    assert [made.address_bits for made in found.values()] == [32, 32, 32, 32, 48, 48, 32]
    assert [len(made.engines) for made in found.values()] == [1, 1, 2, 2, 2, 2, 1] and found[9].engines == ("render", "blitter")
    assert str(found[7.5]) == "gen 7.5" and "like" not in dict(found[9].capabilities)
    with pytest.raises(SpecError, match=r"generations\.toml names no capability 'adress_bits'"):
        _ = found[9].adress_bits
    assert not hasattr(found[9], "__copy__")


@pytest.mark.parametrize("changed, complaint", [
    ({"9": {"like": "11"}}, "9 is like 11, which does not stand above it"),
    ({"9": {"like": "9"}}, "9 is like 9, which does not stand above it"),
    ({"9": {"like": "8", "moons": 1, "comets": 2}}, "9 names 'comets', which 8 does not; the first generation names them all"),
    ({"9": {"address_bits": 48}}, "9 is like no generation above it; only the first names all capabilities"),
    ({"12": {"like": "9"}}, "must name generations 4, 4.5, 7, 7.5, 8, 9, 11, not 4, 4.5, 7, 7.5, 8, 9, 11, 12"),
])  # fmt: skip
def test_a_bad_table_of_generations_is_refused(changed: dict[str, dict[str, Any]], complaint: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_generations({**TABLES, **changed})
    assert str(caught.value) == f"generations.toml: {complaint}"
