"""Memory: what a graphics address leads to.

In:  buffers (a memfd each) with the addresses a driver gave them, or physical memory with page tables in it.
Out: bytes at graphics addresses, or a GpuFault that names address, access, space and cause. Nothing else ever comes out.

store.py          Buffer: a sealed memfd, mapped once
space.py          Space: the reading and writing interface every address space has
address_space.py  AddressSpace: buffers mapped by page into 4 GiB arenas, which Python and compiled code both reach
page_table.py     PageTableSpace: the same interface over PhysicalMemory (physical.py), by walking real page tables (walk.py);
                  mirror.py shows its pages to compiled code
guard.py guard.c  call(): runs compiled code; a touch of nothing inside an arena comes back as GpuFault, any other crash stays one
host.py arena.py  mmap itself, and where on the host the arenas lie
"""
