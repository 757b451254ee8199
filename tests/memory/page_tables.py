"""Page tables that tests write bit by bit."""



from softgen.bits.generation import Generation, generation
from softgen.memory.page_table import PageTableSpace
from softgen.memory.physical import PhysicalMemory

PAGE, K64, M2, G1 = 1 << 12, 1 << 16, 1 << 21, 1 << 30
PML4 = 0x7000_0000
NUMBER = {"ivb": 7, "hsw": 7.5, "bdw": 8, "skl": 9, "kbl": 9, "icl": 11, "icllp": 11}


def of(gpu: str) -> Generation:
    return generation(NUMBER[gpu])


class Builder:
    """Writes four-level tables into physical memory, one mapping at a time; knows nothing of the walker."""

    def __init__(self, memory: PhysicalMemory) -> None:
        self.memory, self.next_table = memory, PML4 + PAGE
        memory.write(PML4, bytes(PAGE))

    def table(self, at: int, flags: int = 3) -> int:
        entry = self.memory.read64(at)
        if not entry & 1:
            entry = self.next_table
            self.memory.write(entry, bytes(PAGE))
            self.next_table += PAGE
        self.memory.write64(at, entry | flags)
        return entry & 0x3FFF_FFFF_F000

    def map(self, address: int, physical: int, size: int, flags: int = 3) -> None:
        pdp = self.table(PML4 + (address >> 39 & 511) * 8)
        if size == G1:
            return self.memory.write64(pdp + (address >> 30 & 511) * 8, physical | 0x80 | flags)
        directory = self.table(pdp + (address >> 30 & 511) * 8)
        if size == M2:
            return self.memory.write64(directory + (address >> 21 & 511) * 8, physical | 0x80 | flags)
        table = self.table(directory + (address >> 21 & 511) * 8, 0x803 if size == K64 else 3)
        self.memory.write64(table + (address >> 12 & 511) * 8, physical | flags)


def four_level(gpu: str = "kbl") -> tuple[Builder, PageTableSpace]:
    memory = PhysicalMemory("ram")
    return Builder(memory), PageTableSpace.four_level("ppgtt", of(gpu), memory, PML4)
