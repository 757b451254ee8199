"""The extended message descriptor's fields as masks.

Text shows an extended descriptor on every generation, sends encode one from the first generation with the page on; its fields never moved.

Reads   EXTENDED_MESSAGE_DESCRIPTOR
"""

from __future__ import annotations

from softgen.bits.catalogue import layout
from softgen.bits.layout import GENERATIONS

_PAGE = layout("EXTENDED_MESSAGE_DESCRIPTOR", GENERATIONS[-1])

FUNCTION_ID = _PAGE.field("target_function_id").mask
END_OF_THREAD = _PAGE.field("end_of_thread").mask
MESSAGE_LENGTH = _PAGE.field("extended_message_length").mask
FUNCTION_CONTROL = _PAGE.field("extended_function_control").mask


def unit(mask: int) -> int:
    """The value of a field's lowest bit within the descriptor."""
    return mask & -mask
