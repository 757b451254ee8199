"""Two engines on the same dispatch: what the first leaves in memory, the second must leave too.

    groups = Compared(Groups("reference"), Groups("t1"))

Memory is put back between the two. A Difference names kernel, group, address and both values, and the instruction that stored there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from softgen.errors import GpuFault, SoftgenError, Unsupported
from softgen.gpgpu import group
from softgen.gpgpu.engines import Groups
from softgen.gpgpu.group import Group
from softgen.gpgpu.walker import Done, Plan, Spent, Surroundings
from softgen.memory.space import Space
from softgen.shared_functions.dataport import Surfaces

LARGEST = 2 << 30  # bytes of memory that are kept twice
PIECE = 1 << 20
PAGE = 4096


class Difference(SoftgenError):
    """Where two engines part."""


class Snapshot:
    """All bytes of a space."""

    def __init__(self, space: Space) -> None:
        self.space, self.pieces, size = space, {}, 0
        for region in space.regions():
            size += region.size
            if size > LARGEST:
                raise Unsupported(f"{space.name} has more than {LARGEST >> 30} GiB: too much to compare engines on")
            for at in range(region.start, region.start + region.size, PIECE):
                self.pieces[at] = space.read(at, min(PIECE, region.start + region.size - at))

    def restore(self) -> None:
        for page, data in self.changed():
            self.space.write(page, data)

    def changed(self) -> Iterator[tuple[int, bytes]]:
        """Pages that are no longer as they were, and how they were."""
        for at, held in self.pieces.items():
            now = self.space.read(at, len(held))
            if now != held:
                for offset in range(0, len(held), PAGE):
                    if now[offset : offset + PAGE] != held[offset : offset + PAGE]:
                        yield at + offset, held[offset : offset + PAGE]


@dataclass(frozen=True)
class Result:
    """What an engine made of some groups: its error, and pages by address."""

    done: tuple[Done, ...]
    error: SoftgenError | None
    pages: dict[int, bytes]

    @property
    def threads(self) -> int:
        return sum(one.threads for one in self.done)


class Compared:
    """Runs dispatches on two engines; what the first did counts."""

    def __init__(self, first: Groups, second: Groups) -> None:
        self.first, self.second = first, second

    @property
    def both(self) -> tuple[Groups, Groups]:
        return self.first, self.second

    def __call__(self, around: Surroundings, plan: Plan, spent: Spent = lambda: False) -> Iterator[Done]:
        before = Snapshot(around.space)
        one, other = (self._run(groups, around, plan, spent, before) for groups in self.both)
        if (page := _differ(one, other)) is not None or _words(one.error) != _words(other.error):
            before.restore()
            raise self._name(around, plan, spent, before, {*one.pages, *other.pages}, page, (one, other))
        before.restore()
        for at, data in one.pages.items():
            around.space.write(at, data)
        yield from one.done
        if one.error:
            raise one.error

    def _run(self, groups: Groups, around: Surroundings, plan: Plan, spent: Spent, before: Snapshot) -> Result:
        """A run from the same beginning; memory is as it left it."""
        before.restore()
        done, error = [], None
        try:
            for one in groups(around, plan, spent):
                done.append(one)
        except SoftgenError as found:
            error = found
        return Result(tuple(done), error, {page: around.space.read(page, len(was)) for page, was in before.changed()})

    def _name(self, around: Surroundings, plan: Plan, spent: Spent, before: Snapshot, pages: set[int], page: int | None,
              results: tuple[Result, Result]) -> Difference:  # fmt: skip
        """The first group after which memory differs, from what the groups before it left."""
        title = group.load(around, plan.kernel).title
        names = [groups.name for groups in self.both]
        for number in range(plan.count) if page is not None else ():
            where = plan.group(number)
            x, y, z = where
            alone = replace(plan, grid=(range(x, x + 1), range(y, y + 1), range(z, z + 1)))
            held = Pages(around.space, pages)
            found = []
            for groups in self.both:
                held.restore()
                found.append(self._alone(groups, around, alone, spent, pages))
            if (at := _first(found[0], found[1])) is not None:
                held.restore()
                stored = _store(around, alone, where, at)
                return Difference(f"{names[0]} and {names[1]} differ: {title}, group {where}: {_values(names, at, found)}{stored}")
        if page is not None:
            found = [{one: result.pages.get(one, before.space.read(one, PAGE)) for one in pages} for result in results]
            what = _values(names, _first(found[0], found[1]) or page, found)
            return Difference(f"{names[0]} and {names[1]} differ: {title}: {what}, though no group alone does so")
        words = [_words(result.error) or "no error" for result in results]
        return Difference(f"{names[0]} and {names[1]} differ: {title}: {names[0]} says {words[0]!r}, {names[1]} says {words[1]!r}")

    def _alone(self, groups: Groups, around: Surroundings, plan: Plan, spent: Spent, pages: set[int]) -> dict[int, bytes]:
        try:
            for _ in groups(around, plan, spent):
                pass
        except SoftgenError:
            pass  # what it wrote is compared; whether both fail alike was seen before
        return {page: around.space.read(page, PAGE) for page in pages}


class Pages:
    """Some pages, to be put back."""

    def __init__(self, space: Space, pages: set[int]) -> None:
        self.space, self.held = space, {page: space.read(page, PAGE) for page in pages}

    def restore(self) -> None:
        for page, data in self.held.items():
            if self.space.read(page, PAGE) != data:
                self.space.write(page, data)


def _differ(one: Result, other: Result) -> int | None:
    """The first page that two runs left differently."""
    differing = {page for page, _ in one.pages.items() ^ other.pages.items()}
    return min(differing, default=None)


def _first(one: dict[int, bytes], other: dict[int, bytes]) -> int | None:
    """The first address at which pages differ, of a dword."""
    for page in sorted(one):
        if one[page] != other[page]:
            return page + next(i for i in range(PAGE) if one[page][i] != other[page][i]) // 4 * 4
    return None


def _values(names: list[str], at: int, pages: list[dict[int, bytes]]) -> str:
    def value(held: dict[int, bytes]) -> str:
        start = at % PAGE
        return f"{int.from_bytes(held[at - start][start : start + 4], 'little'):#010x}"

    return f"at {at:#x} {names[0]} has {value(pages[0])}, {names[1]} has {value(pages[1])}"


def _words(error: SoftgenError | None) -> str:
    """What of an error engines must agree on: they may be in other places of a loop when time is up."""
    if isinstance(error, GpuFault):
        return f"{error.access} at {error.address:#x}"
    return str(error) if error else ""


def _store(around: Surroundings, plan: Plan, where: tuple[int, int, int], address: int) -> str:
    """The instruction that last changes an address when the reference runs the group."""
    surfaces = Surfaces(around.generation, around.space, around.bases, plan.binding_table)
    runs = Group(around, plan, where, group.load(around, plan.kernel), surfaces)
    last, held = "", around.space.read(address, 4)
    moved = True
    try:
        while moved:
            moved = False
            for number, runner in enumerate(runs.runners):
                while not runner.thread.ended:
                    ip = runner.thread.ip
                    if not runner.step():
                        break
                    moved = True
                    if (now := around.space.read(address, 4)) != held:
                        held, last = now, group.place(number, where, runner.code, ip)
                    if runner.thread.ip <= ip:
                        break
    except SoftgenError:
        pass
    return f"; stored by {last}" if last else ""
