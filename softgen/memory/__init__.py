"""Memory: graphics address spaces.

In:  buffers (a memfd each) with the addresses a driver gave them, or physical memory with page tables in it.
Out: bytes at graphics addresses, or a GpuFault that names address, access, space and cause.

store.py          MemfdBuffer: a sealed memfd, mapped once
space.py          Space: the reading and writing interface every address space has
address_space.py  AddressSpace: buffers mapped by page into 4 GiB arenas, which Python and compiled code both reach
page_table.py     PageTableSpace: the same interface over PhysicalMemory (physical.py), by walking real page tables (walk.py);
                  mirror.py maps its pages for compiled code
guard.py guard.c  call(): runs compiled code; an access to an unmapped page of an arena becomes a GpuFault, any other crash stays a crash
guard.h           the record of a fault; graphics_memory.h addresses in C code
read_set.py       ReadSet: bytes that a result was made from, compared before it is used again (read_set.c, read_set.h)
host.py arena.py  mmap, and the host address ranges of arenas
"""
