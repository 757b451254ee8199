"""The thread spawner and the message gateway of Gen4.5: children, synchronised roots, queues, registers that others write."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from softgen.errors import SoftgenError
from tests.media.vfe.batch import DESCRIPTORS, END, EXTRA, OUT, TABLE, Media, buffer_surface, dump, media_object, pack, words
from tests.three_d.g45_draw import move, send

GATEWAY, SPAWNER, URB = 3, 7, 6
ROOT, CHILD, KEEP, SPAWN, SPAWN_ROOT = 0, 2, 0x10, 1, 0x11
ROOT_END, ROOT_KEEPS = END, send(0, SPAWNER, KEEP, 1, eot=True, name="thread_spawner")
CHILD_END = send(0, SPAWNER, CHILD | KEEP, 1, eot=True, name="thread_spawner")
CHILDREN = {"children_present": 1}
KEY = 0x1212


def set_dwords(register: str, **values: int) -> str:
    """Dwords of a register, by number."""
    return "\n".join(f"mov(1) {register}.{name[1:]}<1>UD {value:#010x}UD {{ align1 nomask }};" for name, value in values.items())


def write_urb(first: int, *registers: str) -> str:
    """Registers into the root's entry, from row-relative register `first` on; a header with all channels."""
    header = f"{move('g100', 'g0<8,8,1>')}\n{set_dwords('g100', _5=0xFF00)}"
    data = "\n".join(move(f"m{1 + n}", f"{register}<8,8,1>") for n, register in enumerate(registers))
    return f"{header}\n{data}\n{send(0, URB, first << 4, 1 + len(registers), source='g100')}"


def spawn(descriptor: int, offset: int, length: int, kind: int = SPAWN) -> str:
    """A child of interface descriptor `descriptor` with registers of the entry from `offset` on; or the release of a synchronised root."""
    return f"""{move('g101', 'g0<8,8,1>')}
add(1) g101.2<1>UD g0.2<0,1,0>UD {16 * descriptor:#010x}UD {{ align1 nomask }};
{set_dwords('g101', _4=length << 10 | offset)}
{send(1, SPAWNER, kind, 1, name='thread_spawner', source='g101')}"""


def ticket(column: int = 0) -> str:
    """A number that is one more each time a thread takes one, in g110: dword `column` of the second surface. Threads run one at a time."""
    return f"""{move('g102', 'g0<8,8,1>')}
{set_dwords('g102', _2=16 * column)}
{send(1, 4, 1, 1, 1, to='g110<1>UD', name='read', source='g102')}
{move('m2', 'g110<8,8,1>')}
add(1) m2<1>UD g110<0,1,0>UD 0x00000001UD {{ align1 nomask }};
{send(1, 5, 1, 2, name='write', source='g102')}"""


def loop(body: str, condition: str) -> str:
    """A body that is repeated while a comparison holds."""
    again = f"{body}\ncmp.{condition}"
    back = -again.count(";") - 1 & 0xFFFFFFFF
    return f"{again}\n(+f0.0) jmpi(1) {back:#010x}UD {{ align1 nomask }};"


def number(value: str) -> str:
    """Lets `dump` write to the row of a number."""
    return f"mov(1) g0.6<1>UD {value} {{ align1 nomask }};"


def tree(*kernels: str, objects: int = 1, vfe: Any = None, commands: Any = None, **more: Any) -> Any:
    """Root threads of the first kernel; interface descriptor n has kernel n."""
    state = {**CHILDREN, "urb_entry_allocation_size": 15, **(vfe or {})}
    surfaces = [buffer_surface(OUT), buffer_surface(EXTRA)]
    commands = commands or [media_object(inline=[n]) for n in range(objects)]
    return Media(commands, kernels=kernels, vfe=state, surfaces=surfaces, **more).run()


# -- children --------------------------------------------------------------------------------------------------------------

# Builds r0 of a child from its own, with number 9, and two registers of data.
CHILD_R0 = f"{move('g20', 'g0<8,8,1>')}\n{set_dwords('g20', _0=0xABCD, _6=9, _7=77)}"
DATA = "\n".join(f"mov(8) g{21 + n}<1>UD {value:#010x}UD {{ align1 nomask }};" for n, value in enumerate((0x2121, 0x2222)))
BUILDS = f"{CHILD_R0}\n{DATA}\n{write_urb(2, 'g20', 'g21', 'g22')}"


@pytest.mark.behaviour("G45-TS-06", "G45-TS-08", "G45-TS-09", "G45-TS-10", "G45-TS-02", "G45-TS-21", "G45-TS-16", "G45-VFE-24",
                       shows="action")  # fmt: skip
@pytest.mark.parametrize(("length", "expected"), [(2, (0x2121, 0x2222)), (1, (0x2121, 0)), (0, (0, 0))])
def test_a_child_finds_what_its_parent_put_into_the_urb(length: int, expected: tuple[int, int]) -> None:
    """r0 as it was written, then as many registers as the message says. Its descriptor is the second, whose tables count for nothing. The
    root has ended by then."""
    root = f"{BUILDS}\n{spawn(1, 2, length)}\n{ROOT_END}"
    ran = tree(root, dump(3, end=CHILD_END), descriptors={1: {"binding_table_pointer": 0x7000, "kernel_start_pointer": 0x2000}})
    header = ran.registers(9, 0)
    assert (header[0], header[2], header[4], header[6], header[7]) == (0xABCD, DESCRIPTORS, TABLE, 9, 77)
    assert (ran.registers(9, 1)[0], ran.registers(9, 2)[0]) == expected
    assert ran.gpu.counters.threads == 2 and not ran.warnings


@pytest.mark.behaviour("G45-TS-11", shows="action")
def test_constants_of_children_stand_behind_their_header() -> None:
    root = f"{BUILDS}\n{spawn(1, 2, 2)}\n{ROOT_END}"
    wants = {1: {"constant_urb_entry_read_length": 2, "kernel_start_pointer": 0x2000}}
    ran = tree(root, dump(5, end=CHILD_END), descriptors=wants, curbe=words(range(800, 816)))
    assert ran.registers(9, 1, 2) == tuple(range(800, 816)) and ran.registers(9, 3)[0] == 0x2121 and ran.registers(9, 4)[0] == 0x2222


@pytest.mark.behaviour("G45-TS-10", shows="action")
def test_descriptors_outside_of_the_array_are_remarked() -> None:
    root = f"{BUILDS}\n{spawn(1, 2, 0)}\n{ROOT_END}".replace("add(1) g101.2<1>UD g0.2<0,1,0>UD 0x00000010UD",
                                                            f"mov(1) g101.2<1>UD {DESCRIPTORS - 16:#010x}UD")  # fmt: skip
    patch = {(2 << 20) + DESCRIPTORS - 16: words(pack("INTERFACE_DESCRIPTOR_DATA", kernel_start_pointer=0x2000))}
    ran = tree(root, dump(1, end=CHILD_END), patch=patch)
    assert ran.warnings == [f"a child's interface descriptor at {DESCRIPTORS - 16:#x} is not in the array at {DESCRIPTORS:#x} (G45 9250)"]
    assert ran.registers(9, 0)[6] == 9


@pytest.mark.behaviour("G45-TS-14", "G45-TS-01", shows="action")
def test_children_go_before_roots() -> None:
    """One root at a time: the child of the first has a ticket before the second root, which waits in the queue already."""
    shows = f"{ticket()}\n{number('g110<0,1,0>UD')}"
    root = f"{BUILDS}\n{spawn(1, 2, 0)}\n{ticket()}\nmov(1) g0.6<1>UD g110<0,1,0>UD {{ align1 nomask }};\n{dump(1, end=ROOT_END)}"
    ran = tree(root, f"{shows}\n{dump(1, end=CHILD_END)}", objects=2, vfe={"maximum_number_of_threads": 0})
    assert [ran.registers(n, 0)[0] == 0xABCD for n in range(4)] == [False, True, False, True]


@pytest.mark.behaviour("G45-TS-15", shows="action")
def test_more_children_than_the_queue_and_the_machine_have_room_for() -> None:
    """A hundred and twenty children of one root: the sender waits where eight messages are queued."""
    body = f"{spawn(1, 2, 0)}\nadd(1) g60<1>UD g60<0,1,0>UD 0x00000001UD {{ align1 nomask }};"
    again = loop(body, "l.f0.0(1) null<1>UD g60<0,1,0>UD 0x00000078UD { align1 nomask };")
    ran = tree(f"{BUILDS}\n{again}\n{ROOT_END}", f"{ticket()}\n{CHILD_END}")
    assert struct.unpack("<I", ran.space.read(EXTRA, 4)) == (120,) and ran.gpu.counters.threads == 121


# -- roots -----------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-VFE-05", "G45-TS-04", "G45-TS-07", shows="action")
def test_entries_are_taken_in_order_when_they_are_free() -> None:
    """Two entries of sixteen rows from row 0 on, five objects: the handles go round."""
    ran = tree(dump(1, end=ROOT_END), objects=5, vfe={"number_of_urb_entries": 2})
    assert [ran.header(n).urb_handle for n in range(5)] == [0, 16, 0, 16, 0] and not ran.warnings


@pytest.mark.behaviour("G45-TS-04", "G45-TS-17", shows="action")
def test_entries_that_nobody_releases_are_a_deadlock_with_a_name() -> None:
    where = r"^MI_FLUSH at 0x[0-9a-f]+ \(batch 0x100000, gen 4.5\): deadlock: 0 threads wait"
    with pytest.raises(SoftgenError, match=where + ", 1 root threads are queued, .* 2 entries of the URB are not"):
        tree(dump(1, end=ROOT_KEEPS), objects=3, vfe={"number_of_urb_entries": 2})


@pytest.mark.behaviour("G45-TS-03", shows="action")
def test_without_children_entries_are_free_at_once() -> None:
    ran = Media([media_object() for _ in range(9)], vfe={"number_of_urb_entries": 2}, kernels=[dump(1, end=ROOT_KEEPS)]).run()
    assert ran.gpu.counters.threads == 9 and {ran.header(n).urb_handle for n in range(9)} == {0}


@pytest.mark.behaviour("G45-TS-07", shows="action")
def test_an_entry_is_released_once() -> None:
    release = send(0, SPAWNER, ROOT, 1, name="thread_spawner")
    ran = tree(f"{release}\n{dump(1, end=ROOT_END)}")
    assert ran.warnings == ["URB handle 0x0 is released, but no thread holds it; it can be released once (G45 11900)"]


@pytest.mark.behaviour("G45-TS-05", shows="action")
def test_roots_that_end_elsewhere_are_remarked() -> None:
    """With a message to the URB."""
    end = send(0, URB, 0, 1, eot=True)
    ran = tree(dump(1, end=end))
    assert ran.warnings == ["kernel 0x201000: a root thread ended without its message to the thread spawner (G45 11883)"]


@pytest.mark.behaviour("G45-TS-01", "G45-VFE-21", shows="action")
@pytest.mark.parametrize(("most", "runs"), [(3, True), (2, False)])
def test_as_many_roots_are_live_as_the_state_allows(most: int, runs: bool) -> None:
    """Three roots that wait until all have a ticket."""
    read = send(1, 4, 1, 1, 1, to="g110<1>UD", name="read", source="g102")
    again = loop(read, "l.f0.0(1) null<1>UD g110<0,1,0>UD 0x00000003UD { align1 nomask };")
    waits = f"{ticket()}\n{again}\n{ROOT_END}"
    turns = iter(range(12))  # one for each command, and one for each turn of all live threads
    late: Any = {"timed_out": lambda: next(turns, None) is None}
    media = Media([media_object() for _ in range(3)], kernels=[waits], vfe={**CHILDREN, "maximum_number_of_threads": most - 1},
                  surfaces=[buffer_surface(OUT), buffer_surface(EXTRA)])  # fmt: skip
    if runs:
        assert media.run(**late).gpu.counters.threads == 3
    else:
        with pytest.raises(SoftgenError, match="time is up"):
            media.run(**late)


# -- synchronised roots ----------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-TS-12", "G45-TS-13", "G45-VFE-14", shows="action")
def test_a_synchronised_root_waits_for_a_message_and_has_its_data_first() -> None:
    """The second object's thread: r0, one register of constants, two of the message, then its own inline data."""
    root = f"{BUILDS}\n{spawn(0, 3, 2, SPAWN_ROOT)}\n{dump(1, end=ROOT_END)}"
    objects = [media_object(inline=[5]), media_object(inline=[6], thread_synchronization=1, interface_descriptor_offset=1)]
    wants = {1: {"constant_urb_entry_read_length": 1, "kernel_start_pointer": 0x2000}}
    ran = tree(root, dump(5, end=ROOT_END), commands=objects, descriptors=wants, curbe=words(range(900, 916)))
    assert ran.registers(1, 1) == tuple(range(900, 908))
    assert [ran.registers(1, n)[0] for n in (2, 3, 4)] == [0x2121, 0x2222, 6] and not ran.warnings


@pytest.mark.behaviour("G45-TS-12", "G45-TS-17", shows="action")
def test_messages_and_synchronised_roots_that_find_no_partner_are_a_deadlock() -> None:
    alone = [media_object(), media_object(thread_synchronization=1)]
    with pytest.raises(SoftgenError, match=r"deadlock: .* 1 root threads are queued, 1 of them synchronised, 0 messages to spawn one"):
        tree(dump(1, end=ROOT_END), commands=alone)
    root = f"{BUILDS}\n{spawn(0, 3, 1, SPAWN_ROOT)}\n{ROOT_END}"
    with pytest.raises(SoftgenError, match=r"deadlock: .* 0 root threads are queued, 0 of them synchronised, 1 messages to spawn one"):
        tree(root)


@pytest.mark.behaviour("G45-TS-12", shows="action")
def test_a_child_behind_a_message_for_a_root_waits_for_that_root() -> None:
    """The root sends a message for a synchronised root, then spawns a child; an ordinary root between them goes first."""
    first = f"{BUILDS}\n{spawn(0, 3, 1, SPAWN_ROOT)}\n{spawn(3, 2, 0)}\n{ticket()}\n{ROOT_END}"
    later = f"{ticket()}\n{number('g110<0,1,0>UD')}\nmov(1) g0.7<1>UD VALUEUD {{ align1 nomask }};\n"
    kernels = [first, *(later.replace("VALUE", f"{n:#010x}") + dump(1, end=CHILD_END if n == 3 else ROOT_END) for n in (1, 2, 3))]
    objects = [media_object(), media_object(interface_descriptor_offset=1),
               media_object(interface_descriptor_offset=2, thread_synchronization=1)]  # fmt: skip
    ran = tree(*kernels, commands=objects, vfe={"maximum_number_of_threads": 0})
    assert [ran.registers(n, 0)[7] for n in (1, 2, 3)] == [1, 2, 3]


@pytest.mark.behaviour("G45-TS-19", shows="action")
def test_a_fence_holds_roots_back_until_a_thread_is_spawned() -> None:
    """The persistent thread takes a ticket before and after it spawns; the root behind it has one later than the first two."""
    persistent = f"{BUILDS}\n{ticket()}\n{spawn(1, 2, 0)}\n{ROOT_END}"
    root = f"{ticket()}\n{number('g110<0,1,0>UD')}\n{dump(1, end=ROOT_END)}"
    fence = media_object("MEDIA_OBJECT_PRT", inline=[0], prt_fence_needed=1)
    ran = tree(persistent, CHILD_END, root, commands=[fence, media_object(interface_descriptor_offset=2)])
    assert ran.registers(1, 0)[2] == DESCRIPTORS + 32 and ran.gpu.counters.threads == 3
    quiet = f"{ticket()}\n{ROOT_END}"
    with pytest.raises(SoftgenError, match="deadlock: 0 threads wait, 1 root threads are queued"):
        tree(quiet, CHILD_END, root, commands=[fence, media_object(interface_descriptor_offset=2)])


@pytest.mark.behaviour("G45-TS-18", shows="action")
def test_there_is_one_persistent_thread_at_a_time() -> None:
    """A flush between them is enough; nothing restarts them, so their header says nothing of it."""
    persistent = media_object("MEDIA_OBJECT_PRT", inline=[8])
    told = "a second persistent root thread without an MI_FLUSH: there can be one at a time (G45 9283-9286)"
    ran = tree(dump(2, end=ROOT_END), commands=[persistent, persistent])
    assert ran.warnings == [told] and ran.registers(1, 1)[0] == 8 and ran.registers(1, 0)[7] == 0
    assert not tree(dump(1, end=ROOT_END), commands=[persistent, pack("MI_FLUSH"), persistent]).warnings


# -- the gateway -----------------------------------------------------------------------------------------------------------

# Opens g40 and the fifteen registers behind it, and gives its sr0.0 to a child in r0.6.
OPENS = f"""{move('g103', 'g0<8,8,1>')}
{set_dwords('g103', _4=KEY, _5=40 << 21 | 4 << 8)}
{send(1, GATEWAY, 0, 1, name='gateway', source='g103')}
mov(8) g41<1>UD 0x00000000UD {{ align1 nomask }};
{CHILD_R0}
mov(1) g20.3<1>UD sr0<0,1,0>UD {{ align1 nomask }};
{write_urb(2, 'g20')}"""


def forward(offset: int, length: int, data: int, notify: bool = False, key: int = KEY) -> str:
    """A child's message to the thread that its r0.3 names."""
    return f"""{move('g104', 'g0<8,8,1>')}
{set_dwords('g104', _0=data, _5=offset << 16 | length << 8)}
shl(1) g104.4<1>UD g0.3<0,1,0>UD 0x00000010UD {{ align1 nomask }};
or(1) g104.4<1>UD g104.4<0,1,0>UD {key:#010x}UD {{ align1 nomask }};
{send(1, GATEWAY, 2 | notify << 15, 1, name='gateway', source='g104')}"""


def shows(register: int) -> str:
    return f"{move('g1', f'g{register}<8,8,1>')}\n{dump(2, end=ROOT_END)}"


def test_notifications_are_counted() -> None:
    """Three children notify before the root waits three times; each has written a byte by then."""
    root = f"{OPENS}\n" + "\n".join(spawn(n, 2, 0) for n in (1, 2, 3)) + "\n" + 3 * "wait(1) n0<1>UD { align1 nomask };\n" + shows(41)
    children = [f"{forward(32 + 4 * n, 0, 0xAABBCC00 + n, True)}\n{CHILD_END}" for n in (1, 2, 3)]
    ran = tree(root, *children)
    assert ran.registers(0, 1)[:5] == (0, 1, 2, 3, 0) and not ran.warnings


def test_a_thread_that_polls_its_registers_sees_them_change() -> None:
    """It never waits: the child is to have its turns too. Sixteen bytes are the most that a message has."""
    again = loop("", "z.f0.0(1) null<1>UD g41<0,1,0>UD 0x00000000UD { align1 nomask };")
    root = f"{OPENS}\n{spawn(1, 2, 0)}\n{again}\n{shows(41)}"
    ran = tree(root, f"{forward(32, 2, 0x12345678)}\n{CHILD_END}")
    assert ran.registers(0, 1)[:2] == (0x12345678, 0)


def test_messages_to_a_gateway_that_is_not_open_are_dropped() -> None:
    """Another key, a place outside, a gateway that was closed again."""
    waits = "wait(1) n0<1>UD { align1 nomask };\n"
    child = f"{forward(32, 2, 5, False, 7)}\n{forward(16 * 32 - 2, 2, 5)}\n{forward(36, 2, 6, True)}\n{CHILD_END}"
    ran = tree(f"{OPENS}\n{spawn(1, 2, 0)}\n{waits}{shows(41)}", child)
    assert ran.registers(0, 1)[:3] == (0, 6, 0)
    assert ran.warnings == ["a message to thread 0, whose gateway is not open for key 0x7, is dropped",
                            "4 bytes at 0x1fe of a gateway of 0x200 bytes are dropped"]  # fmt: skip
    closes = send(1, GATEWAY, 1, 1, name="gateway", source="g103")
    with pytest.raises(SoftgenError, match="deadlock: 1 threads wait, 0 root threads are queued"):
        tree(f"{OPENS}\n{closes}\n{spawn(1, 2, 0)}\n{waits}{shows(41)}", f"{forward(32, 2, 5, True)}\n{CHILD_END}")


def test_threads_without_children_present_spawn_none() -> None:
    with pytest.raises(SoftgenError, match="thread_spawner: spawn_child_thread"):
        Media([media_object()], kernels=[f"{spawn(1, 2, 0)}\n{ROOT_END}"]).run()
