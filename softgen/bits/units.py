"""Sizes that every package shares: their one home. In bytes, but for counts and masks."""

WORD = 2
DWORD = 4
QWORD = 8
OWORD = 16  # the unit of block messages
GRF_BYTES = 32  # a general register; a message register has as many
GRF_COUNT = 128  # general registers of a thread
PAGE_SIZE = 4096  # a page of graphics memory and of the host
DWORD_MASK = (1 << 32) - 1  # all bits of a dword
QWORD_MASK = (1 << 64) - 1
