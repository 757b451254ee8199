"""Commands that only say something: they are latched under their name, and whoever acts later looks there.

Reads   3DSTATE_WM_HZ_OP
"""

from __future__ import annotations

import re
from functools import cache

from softgen.bits.record import Record

# What names of state look like. VDENC_WALKER_STATE starts an encoder, so none of that family is here.
SAYS = re.compile(
    r"3DSTATE_\w+|STATE_\w+|(MFX|MFD|HCP|HUC|VEBOX|SFC)_\w*STATE|PIPELINE_SELECT|GPGPU_CSR_BASE_ADDRESS|SWTESS_BASE_ADDRESS"
)
# State that acts when one of these fields is set.
ACTS_BY = {
    "3DSTATE_WM_HZ_OP": ("depth_buffer_clear_enable", "stencil_buffer_clear_enable", "depth_buffer_resolve_enable",
                         "hierarchical_depth_buffer_resolve_enable"),
}  # fmt: skip


@cache
def _says(name: str) -> bool:
    return bool(SAYS.fullmatch(name))


def only_says(name: str, values: Record) -> bool:
    """Whether a command does no more than say something."""
    acts = name in ACTS_BY and any(field in values._fields and getattr(values, field) for field in ACTS_BY[name])
    return _says(name) and not acts
