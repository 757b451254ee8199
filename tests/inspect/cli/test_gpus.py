"""`softgen gpus` shows what spec/devices.toml says."""

import json

import pytest

from softgen.bits.generation import device, devices
from softgen.inspect.cli.main import main


def test_every_gpu_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpus"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split()[:4] == ["name", "gen", "pci", "id"]
    known = [[device.name, f"{device.generation.number:g}", f"{device.pci_id:#06x}"] for device in devices().values()]
    assert [line.split()[:3] for line in lines] == known
    assert max(map(len, lines)) < 100 and " - " not in "".join(lines)       # fits a terminal, and every size is known


def test_json_is_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpus", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert list(shown) == list(devices())
    assert shown["g45"]["generation"] == 4.5 and shown["g45"]["limits"]["eus"] == 10 and 0x2e22 in shown["g45"]["pci_ids"]


def test_one_gpu_by_name_and_by_pci_id(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpus", "g45"]) == 0
    by_name = capsys.readouterr().out
    assert "0x2e22" in by_name and "address_bits" in by_name
    assert all(name in by_name for name, _ in device("g45").limits)
    assert main(["gpus", "0x2E22"]) == 0
    assert capsys.readouterr().out == by_name


@pytest.mark.parametrize("name", devices())
def test_all_pci_ids_of_a_gpu_are_listed_under_their_number(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpus", name]) == 0
    ids = device(name).pci_ids
    told, listed = capsys.readouterr().out.split(f"PCI ids recognised ({len(ids)})\n")
    assert listed.split() == [f"{pci:#06x}" for pci in ids] and max(map(len, listed.splitlines())) < 100
    assert f"{device(name).pci_id:#06x}" in told and device(name).title in told


def test_aliases_and_pci_ids_find_their_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    for gpu in devices().values():
        for asked in (*gpu.aliases[:1], *map(hex, (gpu.pci_ids[0], gpu.pci_ids[-1]))):
            assert main(["gpus", asked, "--json"]) == 0
            assert list(json.loads(capsys.readouterr().out)) == [gpu.name]


@pytest.mark.parametrize("asked", ["gtx", "0xffff", "0xnonsense", ""])
def test_an_unknown_gpu_is_misuse(asked: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpus", asked]) == 2
    assert capsys.readouterr().err.startswith("softgen: ")
