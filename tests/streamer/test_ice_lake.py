"""Ice Lake's render streamer: where its registers are, which unit takes which command, what its mode registers and watchdog say."""

from __future__ import annotations

import struct

import pytest

from softgen.bits import registers
from softgen.bits.catalogue import catalogue, layout
from softgen.device.gpu import COMMANDS, GpuDevice
from softgen.errors import DecodeError
from softgen.streamer.parser import understood
from softgen.trace.work import Work
from tests.device.host import DATA as HOST_DATA
from tests.device.host import STATUS_PAGE, Host
from tests.gpgpu.job import BATCH as JOB_BATCH
from tests.gpgpu.job import Job, dwords
from tests.streamer.bench import DATA, GPR, Bench
from tests.three_d import own_draw
from tests.three_d.own_draw import BATCH, OwnDraw, box, rectangle

# Writes the group's number, X + 16 Y + 256 Z, to its own dword of surface 0.
STORE = """
(W)  mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud
(W)  shl (8|M0) r10.0<1>:ud r0.6<0;1,0>:ud 4:w
(W)  add (8|M0) r10.0<1>:ud r10.0<8;8,1>:ud r0.1<0;1,0>:ud
(W)  add (8|M0) r11.0<1>:ud r10.0<8;8,1>:ud 0x1:ud
(W)  shl (8|M0) r10.0<1>:ud r10.0<8;8,1>:ud 2:w
(W)  send (1|M0) null r10 0xC 0x04026E00
(W) send (8|M0) null r127 0x27 0x02000010 {EOT}
"""


def walker(**more: object) -> Job:
    return Job(STORE, [bytes(0x400)], "icl", simd=8, **more)  # type: ignore[arg-type]


@pytest.mark.behaviour("ICL-CS-01", "ICL-3D-02", shows="action")
def test_the_engine_is_in_one_mode_at_a_time() -> None:
    """The same streamer runs draws, and behind PIPELINE_SELECT compute; draws only when 3D is selected again (ICL 24-28, 2611-2617)."""
    made = OwnDraw("icl", rectangle(0, 0, 4, 4))
    gpu, space = GpuDevice(walker().device), made.memory()
    gpu.execute(Work("render", space, BATCH))
    assert gpu.counters.draws == 1
    job = walker()
    job.before = [job.pack("PIPELINE_SELECT", pipeline_selection=2, mask_bits=3)]
    memory = job.memory()
    gpu.execute(Work("render", memory, JOB_BATCH))
    assert struct.unpack("<I", memory.read(job.address(0), 4)) == (1,) and gpu.counters.dispatches == 1
    with pytest.raises(DecodeError, match="3DPRIMITIVE while PIPELINE_SELECT has pipeline_selection 2, not the 3D pipeline"):
        gpu.execute(Work("render", space, BATCH))
    made.before = [made.pack("PIPELINE_SELECT", pipeline_selection=0, mask_bits=3)]
    again = made.memory()
    gpu.execute(Work("render", again, BATCH))
    assert gpu.counters.draws == 3


@pytest.mark.behaviour("ICL-CS-03", shows="action")
def test_the_render_streamers_registers_are_in_its_range() -> None:
    """0x2000 to 0x27ff: every register that it has at its own base, and another engine's at the same place of its own (ICL 64-65)."""
    pages = ((name, catalogue().get(name, 11)) for name in catalogue().names())
    own = [(name, page) for name, page in pages if page is not None and page.relative and "render" in page.engines]
    assert len(own) > 100
    for name, page in own:
        last = (page.offset or 0) + 4 * page.dwords * page.count
        assert 0 <= (page.offset or 0) < last <= 0x800, name
    bench = Bench("icl").run(Bench("icl").load({0x2600: 5}))
    bench.run(bench.load({0x22600: 6}), engine="blitter")
    assert [bench.gpu.read_register(at) for at in (0x2600, 0x22600, 0x2E00)] == [5, 6, 0]
    assert registers.place(0x2E00, 11, "render") is None


@pytest.mark.behaviour("ICL-CS-04", shows="action")
def test_registers_are_accessed_by_dwords() -> None:
    """One of 64 bits by two accesses; loads and stores take one dword, and leave what stands beside (ICL 64)."""
    bench = Bench("icl")
    bench.put(DATA, [0x11111111, 0x22222222, 0x33333333, 0x44444444])
    bench.run(bench.load64(GPR, 0xAAAAAAAA_BBBBBBBB),
              bench.pack("MI_LOAD_REGISTER_MEM", register_address=GPR + 4, memory_address=DATA),
              bench.pack("MI_STORE_REGISTER_MEM", register_address=GPR, memory_address=DATA + 8))  # fmt: skip
    assert bench.qword(GPR) == 0x11111111_BBBBBBBB and bench.data() == [0x11111111, 0x22222222, 0xBBBBBBBB, 0x44444444]
    bench.run(bench.pack("MI_LOAD_REGISTER_REG", source_register_address=GPR, destination_register_address=GPR + 12))
    assert bench.qword(GPR + 8) == 0xBBBBBBBB_00000000


@pytest.mark.behaviour("ICL-CS-10", shows="action")
def test_headers_say_which_unit_takes_a_command() -> None:
    """The parser itself, the 3D pipeline's front or the compute engine, by type and subtype; what a unit gets has no header
    (ICL 78-80, 41)."""
    kinds = {"MI_NOOP": (0, "softgen.streamer"), "MI_STORE_DATA_IMM": (0, "softgen.streamer"), "PIPE_CONTROL": (3, "softgen.streamer"),
             "3DPRIMITIVE": (3, "softgen.three_d"), "GPGPU_WALKER": (3, "softgen.gpgpu"), "MEDIA_OBJECT": (3, "softgen.media")}  # fmt: skip
    for name, (kind, unit) in kinds.items():
        header = layout(name, 11).pack()[0]
        assert header >> 29 == kind and understood(header, 11, "render")[0] is layout(name, 11)
        assert COMMANDS[name].__module__.startswith(unit)
        fields = layout(name, 11).raw([header | 0xFF, *[0] * 32][: layout(name, 11).length(header)])._fields
        assert not {"command_type", "command_opcode", "dword_length", "header"} & set(fields)
    assert layout("3DPRIMITIVE", 11).pack()[0] >> 27 & 3 == 3 and layout("GPGPU_WALKER", 11).pack()[0] >> 27 & 3 == 2


@pytest.mark.behaviour("ICL-CS-11", shows="action")
def test_what_the_streamer_does_for_a_context() -> None:
    """From an execlist's fetch to the interrupt of a context switch: the ring is read and its head moved, commands are decoded, registers
    and memory accessed, flushes and user interrupts carried out, and nothing is nothing (ICL 46-62)."""
    host = Host("icl")
    host.gpu.write_register(0x2080, STATUS_PAGE)
    context = host.context(3)
    load = host.pack("MI_LOAD_REGISTER_IMM", entry=[{"register_offset": 0x2600, "data_dword": 0x77}])
    save = host.pack("MI_STORE_REGISTER_MEM", register_address=0x2600, memory_address=HOST_DATA)
    flush = host.pack("PIPE_CONTROL", post_sync_operation=1, address=HOST_DATA + 8, immediate_data=5, notify_enable=1)
    head = host.pack("MI_STORE_REGISTER_MEM", register_address=0x2034, memory_address=HOST_DATA + 16)
    host.say(context, load, save, flush, head, host.pack("MI_NOOP"), host.pack("MI_USER_INTERRUPT"))
    host.submit(context)
    assert host.dwords(HOST_DATA, 5) == [0x77, 0, 5, 0, 4 * (3 + 4 + 6)]
    assert [event.cause for event in host.gpu.interrupts.events] == ["context_switch", "notify", "user", "context_switch"]
    assert host.dwords(context.address + 4096 + 20, 1) == [context.tail]


@pytest.mark.behaviour("ICL-REG-08", shows="action")
def test_a_walkers_dimensions_are_loaded_from_memory() -> None:
    """By MI_LOAD_REGISTER_MEM into three registers (ICL 1423-1434)."""
    job = walker(ends=(9, 9, 9), walker={"indirect_parameter_enable": 1})
    sizes = (3, 2, 1)
    job.before = [job.pack("MI_STORE_DATA_IMM", address=job.address(0) + 0x200 + 8 * n, immediate_data=size | 1 << 32)
                  for n, size in enumerate(sizes)]  # fmt: skip
    job.before += [job.pack("MI_LOAD_REGISTER_MEM", register_address=0x2500 + 4 * n, memory_address=job.address(0) + 0x200 + 8 * n)
                   for n in range(3)]  # fmt: skip
    memory = job.memory()
    gpu = GpuDevice(job.device)
    gpu.execute(Work("render", memory, JOB_BATCH))
    found = struct.unpack("<128I", memory.read(job.address(0), 512))
    assert {n: value for n, value in enumerate(found) if value} == {x + 16 * y: x + 16 * y + 1 for x in range(3) for y in range(2)}
    assert [gpu.read_register(0x2500 + 4 * n) for n in range(3)] == list(sizes) and gpu.counters.threads == 6


@pytest.mark.behaviour("ICL-REG-07", shows="action")
@pytest.mark.parametrize("extended", [0, 1])
@pytest.mark.parametrize("engine", ["reference", "t1"])
def test_a_draws_parameters_are_loaded_into_registers(extended: int, engine: str) -> None:
    """Start, count, instances, their start and the base vertex; the end offset; and three more that vertices get with VF_SGVS_2
    (ICL 1411-1421)."""
    corners = [*rectangle(0, 0, 2, 2), *rectangle(4, 4, 8, 8), *rectangle(8, 0, 12, 4)]
    names = {"3DPRIM_END_OFFSET": 0x2420, "3DPRIM_START_VERTEX": 0x2430, "3DPRIM_VERTEX_COUNT": 0x2434, "3DPRIM_INSTANCE_COUNT": 0x2438,
             "3DPRIM_START_INSTANCE": 0x243C, "3DPRIM_BASE_VERTEX": 0x2440, "3DPRIM_XP0": 0x2690, "3DPRIM_XP1": 0x2694,
             "3DPRIM_XP2": 0x2698}  # fmt: skip
    for name, offset in names.items():
        page = layout(name, 11)
        assert (page.offset or 0) + 0x2000 == offset
    made = OwnDraw("icl", corners, primitives=[{"indirect_parameter_enable": 1, "vertex_count_per_instance": 0, "instance_count": 0}])
    values = {0x2430: 3, 0x2434: 3, 0x2438: 1, 0x243C: 0, 0x2440: 0}
    made.before = [made.pack("MI_LOAD_REGISTER_IMM", entry=[{"register_offset": at, "data_dword": v} for at, v in values.items()])]
    assert made.run(engine).lit == box(4, 4, 8, 8)
    indices = struct.pack("<3I", 0, 1, 2)
    made.state = {"3DSTATE_INDEX_BUFFER": {"index_format": 2, "buffer_starting_address": own_draw.DATA, "buffer_size": 12}}
    made.patch = {own_draw.DATA: indices}
    made.primitives = [{"indirect_parameter_enable": 1, "vertex_access_type": 1, "vertex_count_per_instance": 0, "instance_count": 0}]
    values |= {0x2430: 0, 0x2440: 6}
    made.before = [made.pack("MI_LOAD_REGISTER_IMM", entry=[{"register_offset": at, "data_dword": v} for at, v in values.items()])]
    assert made.run(engine).lit == box(8, 0, 12, 4)
    made.primitives = [{"end_offset_enable": 1, "vertex_count_per_instance": 0}]
    made.before = [made.pack("MI_LOAD_REGISTER_IMM", entry=[{"register_offset": 0x2420, "data_dword": 48 * 6 + 47}])]
    made.state = {}
    assert made.run(engine).lit == box(0, 0, 2, 2) | box(4, 4, 8, 8)


@pytest.mark.behaviour("ICL-CMD-02", shows="action")
@pytest.mark.parametrize("engine", ["reference", "t1"])
def test_state_sip_is_where_exceptions_lead(engine: str) -> None:
    """The system routine counts from the instruction base; 3DSTATE_URB_CLEAR is known, and changes nothing that is seen (ICL 1448-1454)."""
    made = OwnDraw("icl", rectangle(0, 0, 4, 4))
    made.before = [made.pack("STATE_SIP", system_instruction_pointer=0x3000), made.pack("3DSTATE_URB_CLEAR", urb_clear_length=4)]
    drawn = made.run(engine)
    assert drawn.lit == box(0, 0, 4, 4)
    saved = drawn.gpu.contexts[0, "render"].latched
    assert saved["STATE_SIP"].system_instruction_pointer == 0x3000


@pytest.mark.behaviour("ICL-CMD-09", shows="action")
@pytest.mark.parametrize("missing", ["MEDIA_INTERFACE_DESCRIPTOR_LOAD", "MEDIA_VFE_STATE", ""])
def test_media_objects_need_the_medias_state(missing: str) -> None:
    """The state that MEDIA_STATE_POINTERS had, and none of 3D (ICL 1549-1562)."""
    job = walker()
    job.starts_threads = [job.pack("MEDIA_OBJECT", inline_data=[])]
    memory, gpu = job.memory(), GpuDevice(job.device)
    if missing:
        fields = {"interface_descriptor_total_length": 32} if "LOAD" in missing else {}
        command = dwords(*job.pack(missing, **fields))
        memory.write(JOB_BATCH + job.batch().index(command), bytes(len(command)))
    if "LOAD" in missing:
        with pytest.raises(DecodeError, match="interface descriptor 0 is asked for, 0 are loaded"):
            gpu.execute(Work("render", memory, JOB_BATCH))
        return
    gpu.execute(Work("render", memory, JOB_BATCH))
    assert struct.unpack("<I", memory.read(job.address(0), 4)) == (1,)
    told = [text for text in gpu.remarks if "a media object before any MEDIA_VFE_STATE" in text]
    assert len(told) == len(gpu.remarks) == bool(missing)


MODE = {"INSTPM": 0xC0, "EXCC": 0x28, "NOPID": 0x94, "PREEMPT_DLY": 0x214, "IDLEDELAY": 0x23C, "SEMA_WAIT_POLL": 0x24C, "HWS_PGA": 0x80}


@pytest.mark.behaviour("ICL-CS-14", shows="action")
@pytest.mark.parametrize("name", MODE)
def test_mode_registers_keep_what_the_ring_loads(name: str) -> None:
    """Those with a mask its bits alone (ICL 86-106); the preemption register is the delay that contexts have (ICL 1752)."""
    page = layout(name, 11)
    assert page.relative and page.offset == MODE[name]
    masked = any(field.name.endswith("_mask") for field in page.fields)
    field = next(held for held in page.fields if not held.name.endswith("_mask"))
    value = 1 << field.low
    bench = Bench("icl")
    bench.ring(bench.load({0x2000 + MODE[name]: value | value << 16 if masked else value}), [0])
    assert bench.gpu.read_register(0x2000 + MODE[name]) & (0xFFFF if masked else 0xFFFFFFFF) == value


@pytest.mark.behaviour("ICL-CTX-01", shows="action")
def test_contexts_are_aligned() -> None:
    """The descriptor and MI_SET_CONTEXT's kind of address have pages, which are multiples of 256 bytes (ICL 1704): status page first, then
    the ring's part of the image (ICL 351)."""
    field = layout("CONTEXT_DESCRIPTOR", 11).field("context_address")
    assert field.low == 12
    with pytest.raises(ValueError, match="must be a multiple of 4096"):
        layout("CONTEXT_DESCRIPTOR", 11).pack(context_address=0x20100)
    host = Host("icl")
    context = host.context(5)
    index = host.pack("MI_STORE_DATA_INDEX", offset=0x30, data_dword_0=7, use_per_process_hardware_status_page=1)
    host.say(context, host.store(0, 9), index)
    host.submit(context)
    assert host.dwords(HOST_DATA, 1) == [9] and host.dwords(context.address + 0xC0, 1) == [7]
    assert host.dwords(context.address + 4096 + 4 * 9, 1) == [context.ring]


CONTEXT = {"BB_ADDR": 0x140, "BB_ADDR_UDW": 0x168, "CXT_SIZE": 0x1A8, "CXT_OFFSET": 0x1AC, "SYNC_FLIP_STATUS": 0x2D0,
           "SYNC_FLIP_STATUS_1": 0x2D4, "SYNC_FLIP_STATUS_2": 0x2EC, "WAIT_FOR_RC6_EXIT": 0xCC, "SBB_ADDR": 0x114, "SBB_ADDR_UDW": 0x11C,
           "SBB_STATE": 0x118, "PS_INVOCATION_COUNT_SLICE0": 0x2C8, "PS_INVOCATION_COUNT_SLICE1": 0x2F0, "PS_DEPTH_COUNT_SLICE0": 0x2D8,
           "PS_DEPTH_COUNT_SLICE1": 0x2F8, "DISPLAY_MESSAGE_FORWARD_STATUS": 0x2E8, "R_PWR_CLK_STATE": 0xC8}  # fmt: skip


@pytest.mark.behaviour("ICL-CS-15", shows="action")
@pytest.mark.parametrize("name", CONTEXT)
def test_logical_context_registers_are_the_streamers(name: str) -> None:
    """At their offsets from its base (ICL 108-150); a host that looks finds what was loaded."""
    page = layout(name, 11)
    assert page.relative and page.offset == CONTEXT[name] and "render" in page.engines
    masked = any(field.name.endswith("_mask") for field in page.fields)
    field = next(held for held in page.fields if not held.name.endswith("_mask"))
    value = 1 << field.low
    bench = Bench("icl")
    bench.ring(bench.load({0x2000 + CONTEXT[name]: value | value << 16 if masked else value}), [0])
    if name not in ("BB_ADDR", "BB_ADDR_UDW", "SBB_ADDR", "SBB_ADDR_UDW", "SBB_STATE"):  # where the parser is, which it writes itself
        assert bench.gpu.read_register(0x2000 + CONTEXT[name]) & (0xFFFF if masked else 0xFFFFFFFF) == value


@pytest.mark.behaviour("ICL-REG-01", shows="action")
def test_index_counts_of_preempted_draws_are_read_only() -> None:
    """34 dwords, of an element each, 0 as long as no draw was preempted: commands and hosts cannot write them, nor does a context's image
    that restores them (ICL 1220-1256)."""
    assert layout("VF_INDEX_COUNT", 11).count == 34 and layout("VF_INDEX_COUNT", 11).offset == 0x8300
    bench = Bench("icl")
    bench.ring(bench.load({0x8300: 5, 0x8384: 6, 0x8388: 7}), [0])
    bench.gpu.write_register(0x8304, 8)
    assert [bench.gpu.read_register(at) for at in range(0x8300, 0x8388, 4)] == [0] * 34 and bench.gpu.read_register(0x8388) == 7
