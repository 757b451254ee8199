"""`softgen gpus`: the graphics processors softgen knows, from spec/devices.toml."""

from __future__ import annotations

import argparse
from typing import Any

from softgen.errors import UsageError
from softgen.inspect.cli.output import paint, print_json, table

SIZES = ("slices", "subslices", "eus", "threads", "urb_kib", "l3_kib")      # columns of the list; `softgen gpus NAME` shows them all
EXAMPLE = """examples:
  softgen gpus                 one line per GPU
  softgen gpus kbl             one GPU: PCI ids, sizes, what its generation can do
  softgen gpus 0x5916          the GPU with this PCI id
  softgen gpus --json          all of it, for machines

exit codes: 0 fine, 2 usage error
"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "gpus", help="the GPUs softgen knows", description="The graphics processors softgen knows.",
        epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gpu", nargs="?", metavar="GPU", help="a name or a PCI id (0x…): show everything about it")
    parser.add_argument("--json", action="store_true", help="an object by name, for machines")


def find(name: str) -> Any:
    """A device by name or PCI id."""
    from softgen.bits.generation import device, device_by_pci
    from softgen.errors import SpecError
    try:
        return device_by_pci(int(name, 16)) if name.lower().startswith("0x") else device(name)
    except ValueError:
        raise UsageError(f"a PCI id must be hexadecimal, such as 0x5916, not {name!r}") from None
    except SpecError as error:
        raise UsageError(error) from None


def run(args: argparse.Namespace) -> int:
    from softgen.bits.generation import devices
    chosen = [find(args.gpu)] if args.gpu is not None else list(devices().values())
    if args.json:
        print_json({device.name: describe(device) for device in chosen})
    elif args.gpu is not None:
        show_one(chosen[0])
    else:
        show_all(chosen)
    return 0


def describe(gpu: Any) -> dict[str, Any]:
    """A device as plain values: what --json prints."""
    return {
        "title": gpu.title, "aliases": list(gpu.aliases), "generation": gpu.generation.number,
        "pci_id": gpu.pci_id, "pci_ids": list(gpu.pci_ids), "limits": dict(gpu.limits),
        "capabilities": dict(gpu.generation.capabilities),
    }


def show_all(chosen: list[Any]) -> None:
    colour = paint()
    rows = [(colour(device.name, "name"), f"{device.generation.number:g}", f"{device.pci_id:#06x}",
             *(f"{dict(device.limits).get(name, '-')}" for name in SIZES), device.title) for device in chosen]
    header = ("name", "gen", "pci id", *SIZES, "title")
    print("\n".join(table(rows, header, right=range(1, len(header) - 1))))


def show_one(gpu: Any) -> None:
    colour = paint()
    names = ", ".join((gpu.name, *gpu.aliases))
    rows = [("name", names), ("title", gpu.title), ("generation", f"{gpu.generation.number:g}")]
    rows += [("presents itself as", f"{gpu.pci_id:#06x}")]
    rows += [(name, f"{value:,}") for name, value in gpu.limits]
    rows += [(name, value) for name, value in gpu.generation.capabilities]
    print("\n".join(table([(colour(name, "name"), value) for name, value in rows])))
    print(colour(f"PCI ids recognised ({len(gpu.pci_ids)})", "heading"))
    ids = [f"{pci:#06x}" for pci in gpu.pci_ids]
    print("\n".join("  " + " ".join(ids[start:start + 12]) for start in range(0, len(ids), 12)))
