"""The stages of the 3D pipeline, and those that are not built.

             4.5                              7, 7.5              8, 9              11
VS           SIMD4x2 threads                  SIMD4x2 threads     SIMD8 threads     SIMD8 threads
CLIP         fixed test, clipping by threads  fixed               fixed             fixed
SETUP        fixed, coefficients by threads   fixed, SBE          fixed, SBE        fixed, SBE
PS payload   plane coefficients               barycentrics        barycentrics      barycentrics
depth, CC    unit state in memory             state blocks        commands          commands

Where a stage differs, its plan says so; capabilities (spec/generations.toml) name the differences.
"""

from __future__ import annotations

from softgen.errors import Unsupported
from softgen.three_d.state.state import DrawState

# Stages that are not built, with the commands that enable them
MISSING = {"hull shader": "3DSTATE_HS", "tessellator": "3DSTATE_TE", "domain shader": "3DSTATE_DS", "geometry shader": "3DSTATE_GS",
           "stream output": "3DSTATE_STREAMOUT"}  # fmt: skip


def refuse_missing(state: DrawState) -> None:
    """Raise Unsupported for a draw that uses a stage which is not built."""
    for stage, command in MISSING.items():
        found = state.get(command)
        if found is not None and found.enable:
            raise Unsupported(f"{stage} ({command}): not yet simulated")
    samples = state.get("3DSTATE_MULTISAMPLE")
    if samples is not None and samples.number_of_multisamples:
        raise Unsupported(f"multisampling (3DSTATE_MULTISAMPLE.number_of_multisamples {samples.number_of_multisamples}): not yet simulated")
