"""Devices by their names and PCI ids, and what they have."""

from __future__ import annotations

import pytest

from softgen.bits.generation import device, device_by_pci, devices, generation, most_of
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


@pytest.mark.parametrize("gen", [4.0, 4.5, 7.0, 7.5, 8.0, 9.0, 11.0])
def test_the_most_that_devices_of_a_generation_have(gen: float) -> None:
    found = [item.limit("eus") for item in devices().values() if item.generation.number == gen]
    assert found and most_of(generation(gen), "eus") == max(found)


@pytest.mark.parametrize("number", [6, 10, 12.0])
def test_an_unknown_generation_is_refused(number: float) -> None:
    with pytest.raises(SpecError, match=f"softgen knows generations 4, 4.5, 7, 7.5, 8, 9, 11, not {number:g}"):
        generation(number)
