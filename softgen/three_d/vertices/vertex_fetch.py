"""Vertex fetch: from vertex buffers and elements to a plan for vertex_fetch.c.

Reads   3DSTATE_VERTEX_BUFFERS 3DSTATE_VERTEX_ELEMENTS 3DSTATE_VF 3DSTATE_VF_INSTANCING 3DSTATE_VF_SGVS 3DSTATE_VF_SGVS_2
        3DSTATE_VF_COMPONENT_PACKING
Writes  components of vertices, into payload registers or vertex URB entries

    plan = vertex_fetch(state, call, Destination.entry(dwords))
    plan.run(ids, count, address, stride)
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from softgen.bits.formats import Format, surface_formats
from softgen.bits.generation import generation
from softgen.bits.record import Record
from softgen.errors import DecodeError, Unsupported
from softgen.three_d.state.state import DrawCall, DrawState
from softgen.three_d.structures import guarded_call
from softgen.three_d.vertices.vertex_fetch_h import FetchElement, FetchRun, FetchStore, VertexFetch, VertexIds

SLOT = 4  # components of a vertex element in the URB
ALL = 0xF  # components, as component packing enables them
UNBOUNDED = 0xFFFFFFFF
LAST_ELEMENT = 32  # that may receive a generated value: "the 33rd" (BDW 12134)
FLOAT_ONE = 0x3F800000
NOSTORE, SOURCE, ZERO, ONE_FLOAT, ONE_INTEGER, VERTEX_ID, INSTANCE_ID, PRIMITIVE_ID = range(8)  # component controls (G45 2229-2237)
PARAMETERS = ("xp0", "xp1", "xp2")  # of draws: for the first two, the state may choose where a draw starts
CONSTANTS = {ZERO: 0, ONE_FLOAT: FLOAT_ONE, ONE_INTEGER: 1}
# enum fetch_kind of vertex_fetch.h
KINDS = ("constant", "vertex_id", "instance_id", "primitive_id", "raw", "uint", "sint", "unorm", "snorm", "uscaled", "sscaled",
         "float16", "float64", "ufloat", "sfixed")  # fmt: skip


@dataclass(frozen=True)
class Destination:
    """Where a vertex's components go: `dwords` of them from `first` on; bytes between elements, and between components of one."""

    first: int
    dwords: int
    element_stride: int
    component_stride: int

    @classmethod
    def entry(cls, dwords: int) -> Destination:
        """A vertex URB entry."""
        return cls(0, dwords, 4 * SLOT, 4)

    def offset(self, dword: int) -> int:
        at = dword - self.first
        return at // SLOT * self.element_stride + at % SLOT * self.component_stride


# -- destination dwords ----------------------------------------------------------------------------------------------


class Source(NamedTuple):
    """How a destination dword is made: bits of element number `element`, or a value without source data (element -1)."""

    kind: str
    element: int = -1
    start: int = 0
    load: int = 0
    shift: int = 0
    width: int = 32
    value: int = 0


GAP = Source("constant")


class Generated(NamedTuple):
    """The state of values that fetch inserts: 3DSTATE_VF_SGVS, 3DSTATE_VF_SGVS_2, and which components packing leaves."""

    ids: Record | None = None
    parameters: Record | None = None
    start_vertex: int = 0  # values of XP0 and XP1
    start_instance: int = 0
    extended: tuple[int, ...] = ()  # of the command
    id_offset: int = 0  # what is added to VertexID
    packing: tuple[int, ...] = ()  # component enables of each element; empty: all


def channels(form: Format) -> dict[int, Source]:
    """The components that a format has. Fields that are whole bytes are loaded by themselves, others with their neighbours."""
    found, bit = {}, 0
    for channel in form.channels:
        kind = {"float": {16: "float16", 32: "raw", 64: "float64"}.get(channel.bits, ""), "raw": "raw"}.get(channel.type, channel.type)
        aligned = bit % 8 == 0 and channel.bits in (8, 16, 32, 64)
        start, load, shift = (bit // 8, channel.bits // 8, 0) if aligned else (0, form.bits // 8, bit)
        if channel.type != "void":
            kind = "raw" if channel.bits == 32 and channel.type in ("uint", "sint") else kind
            found["rgba".index(channel.name)] = Source(kind, 0, start, load, shift, min(channel.bits, 64))
        bit += channel.bits
    return found


def _components(gen: float, number: int, element: Record, form: Format | None, remarks: list[str]) -> list[Source | None]:
    """The destination dwords of an element; None: not stored. Components of PASSTHRU formats have two dwords (KBL 30277-30288)."""
    controls = [getattr(element, f"component_{n}_control") for n in range(SLOT)]
    has = channels(form) if form is not None else {}
    stored = [control != NOSTORE for control in controls]
    if stored != sorted(stored, reverse=True) or not stored[0]:
        remarks.append(f"vertex element {number}: a component is stored after one that is not, or none is")
    wide = form is not None and form.name.endswith("_PASSTHRU")
    found: list[Source | None] = []
    for n, control in enumerate(controls):
        if control == PRIMITIVE_ID and not generation(gen).unit_state:
            raise Unsupported(f"vertex element {number}: component_{n}_control 7, store_pid")
        if control == SOURCE and n not in has:
            remarks.append(f"vertex element {number}: component {n} of {form}, which has none; 0 is stored")
        constant = Source("constant", value=CONSTANTS.get(control, 0))
        made = {NOSTORE: None, SOURCE: has[n]._replace(element=number) if n in has else GAP, VERTEX_ID: Source("vertex_id"),
                INSTANCE_ID: Source("instance_id"), PRIMITIVE_ID: Source("primitive_id")}.get(control, constant)  # fmt: skip
        if wide and made is not None and made.kind == "raw":
            found += [made._replace(start=made.start + half) for half in (0, 4)]
        else:
            found += [made] * (2 if wide else 1)
    return found[: SLOT if controls[2] == NOSTORE else None] if wide else found


@lru_cache(512)
def destination_dwords(gen: float, elements: tuple[Record, ...], generated: Generated) -> tuple[tuple[Source, ...], tuple[str, ...]]:
    """The dwords of a vertex as fetch stores it, gaps filled with zeros; and remarks about the state."""
    placed: dict[int, Source] = {}
    remarks: list[str] = []
    at = 0
    for number, element in enumerate(elements):
        if not element.valid or optional(element, "edge_flag_enable"):
            continue
        form = _format(gen, number, element)
        if "destination_element_offset" in element._fields:
            at = element.destination_element_offset
        made = _components(gen, number, element, form, remarks)
        placed |= {at + n: source for n, source in enumerate(made) if source is not None}
        placed.setdefault(at + len(made) - 1, GAP)
        at += len(made)
    _insert(placed, generated, remarks)
    end = -(-(max(placed, default=-1) + 1) // SLOT) * SLOT
    enabled = [generated.packing[n // SLOT] >> n % SLOT & 1 if n // SLOT < len(generated.packing) else 1 for n in range(end)]
    return tuple(placed.get(n, GAP) for n in range(end) if enabled[n]), tuple(remarks)


def _insert(placed: dict[int, Source], generated: Generated, remarks: list[str]) -> None:
    """Values that the system generates go over what elements have stored (BDW 12108-12141)."""
    ids, parameters = generated.ids, generated.parameters
    where = {} if ids is None else {
        name: SLOT * getattr(ids, f"{name}_element_offset") + getattr(ids, f"{name}_component_number")
        for name in ("vertex_id", "instance_id") if getattr(ids, f"{name}_enable")
    }  # fmt: skip
    if len(set(where.values())) < len(where):
        remarks.append("3DSTATE_VF_SGVS: VertexID and InstanceID go into the same component; InstanceID is stored")
    remarks += [f"3DSTATE_VF_SGVS: {name}_element_offset {at // SLOT}; the last is {LAST_ELEMENT}" for name, at in where.items()
                if at // SLOT > LAST_ELEMENT]  # fmt: skip
    placed |= {at: Source(name, value=generated.id_offset if name == "vertex_id" else 0) for name, at in where.items()}
    if parameters is None:
        return
    starts = generated.start_vertex, generated.start_instance
    for number, name in enumerate(PARAMETERS):
        if getattr(parameters, f"{name}_enable"):
            value = starts[number] if optional(parameters, f"{name}_source_select") else generated.extended[number]
            at = SLOT * getattr(parameters, f"{name}_element_offset") + getattr(parameters, f"{name}_component_number")
            placed[at] = Source("constant", value=value & 0xFFFFFFFF)


def _format(gen: float, number: int, element: Record) -> Format | None:
    """The format of an element that has source data."""
    if all(getattr(element, f"component_{n}_control") != SOURCE for n in range(SLOT)):
        return None
    form = surface_formats().get(element.source_element_format)
    if form is None:
        raise DecodeError(f"vertex element {number}: source_element_format {element.source_element_format} is no format")
    if not form.supports("vertex", gen):
        raise Unsupported(f"vertex element {number}: source_element_format {form.value}, {form.name}: gen {gen:g} does not fetch it")
    return form


# -- the plan --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StoreTable:
    """Destination dwords in the order of vertex_fetch.c: by source element, then those without source data, then the edge flag."""

    stores: ctypes.Array[FetchStore]
    sources: tuple[tuple[int, int, int], ...]  # element number, its first store, and how many
    first: int  # of those without source data
    others: int
    edge_flag: int | None  # element number
    remarks: tuple[str, ...]


@lru_cache(512)
def store_table(gen: float, elements: tuple[Record, ...], generated: Generated, destination: Destination) -> StoreTable:
    """Dwords outside `destination` are left out, those of it that nothing stores are zero."""
    dwords, remarks = destination_dwords(gen, elements, generated)
    end = destination.first + destination.dwords
    wanted = [(n, dwords[n] if n < len(dwords) else GAP) for n in range(destination.first, end)]
    stores: list[FetchStore] = []
    sources = []
    for number in sorted({source.element for _, source in wanted if source.element >= 0}):
        made = [_store(destination.offset(n), source) for n, source in wanted if source.element == number]
        sources.append((number, len(stores), len(made)))
        stores += made
    first = len(stores)
    stores += [_store(destination.offset(n), source) for n, source in wanted if source.element < 0]
    others = len(stores) - first
    edge = next((n for n, element in enumerate(elements) if element.valid and optional(element, "edge_flag_enable")), None)
    if edge is not None:
        form = _format(gen, edge, elements[edge])
        if form is None:  # KBL 30358
            edge, remarks = None, (*remarks, f"vertex element {edge}: an edge flag without source data; all edges are drawn")
        else:
            stores.append(_store(0, channels(form)[0]))
    return StoreTable((FetchStore * len(stores))(*stores), tuple(sources), first, others, edge, remarks)


def _store(offset: int, source: Source) -> FetchStore:
    return FetchStore(offset, source.start, source.load, source.shift, source.width, KINDS.index(source.kind), 0, source.value)


class FetchPlan:
    """A VertexFetch and the memory that it points to."""

    def __init__(self, state: DrawState, structure: VertexFetch, numbers: tuple[int, ...] = (), *owned: object) -> None:
        self.structure, self.owned, self.space = structure, owned, state.space
        self.numbers = numbers  # of the elements that have source data
        self.entry_bytes = 0  # of the vertices' URB entries, where the plan is a draw's

    def starting(self, call: DrawCall) -> FetchPlan:
        """The same for another draw: where its vertices and instances start."""
        self.structure.bias = (call.base_vertex if call.indexed else call.start_vertex) & 0xFFFFFFFF
        self.structure.start_instance = call.start_instance
        return self

    @property
    def address(self) -> int:
        return ctypes.addressof(self.structure)

    def run(self, vertex_ids: int, instance_ids: int, count: int, into: int, stride: int, primitive_ids: int) -> None:
        """Fetch vertices into an array, given the addresses of their IDs."""
        ids = VertexIds(vertex_ids, instance_ids, primitive_ids)
        guarded_call("fetch_vertices", FetchRun(self.address, ids, into, stride, count), self.space)

    def mark_edges(self, vertex_ids: int, instance_ids: int, count: int, objects: int, flags: int) -> None:
        """Fetches edge flags and clears edges of objects that have none; `flags` has room for a byte for each vertex."""
        if self.structure.has_edge_flag:
            run = FetchRun(self.address, VertexIds(vertex_ids, instance_ids), 0, 0, count, objects, flags)
            guarded_call("fetch_edge_flags", run, self.space)


def vertex_fetch(state: DrawState, call: DrawCall, destination: Destination) -> FetchPlan:
    """The plan of a draw."""
    elements = elements_of(state)
    table = store_table(state.gen, elements, generated_values(state, call), destination)
    for remark in table.remarks:
        state.warn(remark)
    buffers, instancing = state.latched.by_index("3DSTATE_VERTEX_BUFFERS"), state.latched.by_index("3DSTATE_VF_INSTANCING")
    found, edge_flag = source_elements(state.space.bits, table, elements, tuple(buffers.items()), tuple(instancing.items()))
    plan = VertexFetch(ctypes.addressof(state.space.table), ctypes.addressof(found), ctypes.addressof(table.stores), len(found),
                       table.first, table.others, has_edge_flag=edge_flag is not None)  # fmt: skip
    if edge_flag is not None:
        plan.edge_flag = edge_flag
    return FetchPlan(state, plan, tuple(number for number, *_ in table.sources), found, table).starting(call)


def fetch_key(state: DrawState, call: DrawCall) -> tuple[int, ...]:
    """What of a draw's parameters its fetch plan depends on, but for where it starts."""
    parameters = state.get("3DSTATE_VF_SGVS_2")
    used = [name for name in PARAMETERS if optional(parameters, f"{name}_enable")]
    starts = int(call.indexed), call.base_vertex, call.start_vertex, call.start_instance
    if not all(optional(parameters, f"{name}_source_select") for name in used):
        return *starts, *call.parameters
    return starts if used or _offsets_ids(state) else ()


def _offsets_ids(state: DrawState) -> bool:
    """Whether VertexID counts from where a draw starts: the base vertex, or the start vertex of a draw without indices."""
    return bool(optional(state.get("3DSTATE_VF"), "vertex_id_offset_enable") and optional(state.get("3DSTATE_VF_SGVS"), "vertex_id_enable"))


def vertex_dwords(state: DrawState, call: DrawCall) -> int:
    """The length of a vertex as fetch stores it."""
    return len(destination_dwords(state.gen, elements_of(state), generated_values(state, call))[0])


# -- state -----------------------------------------------------------------------------------------------------------


def optional(record: Record | None, name: str) -> int:
    """A field that not all generations have, or that of a command that may be missing; 0 by default."""
    return int(getattr(record, name)) if record is not None and name in record._fields else 0


def elements_of(state: DrawState) -> tuple[Record, ...]:
    return tuple(state.command("3DSTATE_VERTEX_ELEMENTS").vertex_element)


def generated_values(state: DrawState, call: DrawCall) -> Generated:
    """The state of generated values; commands that a generation does not have are never latched."""
    fetch, ids, parameters = state.get("3DSTATE_VF"), state.get("3DSTATE_VF_SGVS"), state.get("3DSTATE_VF_SGVS_2")
    packing = state.get("3DSTATE_VF_COMPONENT_PACKING") if optional(fetch, "component_packing_enable") else None
    masks = tuple(element.component_enables for element in packing.vertex_element) if packing is not None else ()
    start = call.base_vertex if call.indexed else call.start_vertex
    offset = start & 0xFFFFFFFF if _offsets_ids(state) else 0
    if parameters is None:
        return Generated(ids, packing=masks, id_offset=offset)
    return Generated(ids, parameters, start, call.start_instance, call.parameters, offset, masks)


Parts = tuple[tuple[int, Record], ...]  # of a command that merges by an index


@lru_cache(512)
def source_elements(bits: int, table: StoreTable, elements: tuple[Record, ...], buffers: Parts,
                    instancing: Parts) -> tuple[ctypes.Array[FetchElement], FetchElement | None]:  # fmt: skip
    """Elements that have source data, and the one of the edge flag; addresses have `bits` bits."""
    numbers = [number for number, *_ in table.sources] + ([] if table.edge_flag is None else [table.edge_flag])
    found = [_source_element(bits, number, elements[number], dict(buffers), dict(instancing)) for number in numbers]
    for made, (_, first, count) in zip(found, table.sources, strict=False):
        made.first, made.stores = first, count
    if table.edge_flag is None:
        return (FetchElement * len(found))(*found), None
    edge_flag = found.pop()
    edge_flag.first, edge_flag.stores = len(table.stores) - 1, 1
    return (FetchElement * len(found))(*found), edge_flag


def _source_element(bits: int, number: int, element: Record, buffers: dict[int, Record], instancing: dict[int, Record]) -> FetchElement:
    buffer = buffers.get(element.vertex_buffer_index)
    if buffer is None:
        raise DecodeError(f"vertex element {number} reads vertex buffer {element.vertex_buffer_index}, which no command has set")
    max_index, size = _bounds(buffer)
    return FetchElement(buffer.buffer_starting_address & (1 << bits) - 1, size, max_index, buffer.buffer_pitch,
                        element.source_element_offset, surface_formats()[element.source_element_format].bits // 8,
                        *_instancing(instancing.get(number), buffer))  # fmt: skip


def _bounds(buffer: Record) -> tuple[int, int]:
    """The last index and the size in bytes; 0 as the last index disables the check (G45 2141-2143)."""
    if "max_index" in buffer._fields:
        return buffer.max_index or UNBOUNDED, (1 << 64) - 1
    return UNBOUNDED, 0 if buffer.null_vertex_buffer else max(buffer.buffer_size, 0)


def _instancing(command: Record | None, buffer: Record) -> tuple[int, int]:
    """Whether an element is the same for a whole instance, and for how many: in the buffer's state, or in a command of its own."""
    if "buffer_access_type" in buffer._fields:
        return buffer.buffer_access_type, buffer.instance_data_step_rate
    return (command.instancing_enable, command.instance_data_step_rate) if command is not None else (0, 0)
