"""Generic mode of Gen4.5's video front end: what root threads find in their registers."""

from __future__ import annotations

import pytest

from softgen.errors import DecodeError, SoftgenError
from tests.media.vfe.batch import (
    CURBE,
    DESCRIPTORS,
    EXTENSION,
    GENERAL,
    INDIRECT,
    TABLE,
    VFE,
    Fields,
    Media,
    dump,
    media_object,
    pack,
    store,
    words,
)

ENGINES = ["reference", "t0", "t1"]
NUMBERS = list(range(101, 133))  # dwords of indirect data


@pytest.mark.behaviour("G45-VFE-09", "G45-TS-02", "G45-VFE-04", shows="action")
@pytest.mark.parametrize("engine", ENGINES)
def test_inline_data_follows_the_header_padded_with_zeros(engine: str) -> None:
    ran = Media([media_object(inline=[11, 22, 33, 44, 55])]).run(engine)
    assert ran.registers(0, 1, 2) == (11, 22, 33, 44, 55, *[0] * 11)
    assert ran.warnings == [] and (ran.gpu.counters.dispatches, ran.gpu.counters.threads) == (1, 1)


@pytest.mark.behaviour("G45-VFE-10", shows="action")
def test_indirect_data_follows_on_the_next_register() -> None:
    """Five dwords inline, then twelve, padded to two registers, from 64 bytes past the base of indirect objects."""
    fetched: Fields = {"indirect_data_length": 48, "indirect_data_start_address": 64}
    ran = Media([media_object(inline=[1, 2, 3, 4, 5], **fetched)], indirect=bytes(64) + words(NUMBERS[:12]), kernels=[dump(5)]).run()
    assert ran.registers(0, 1, 4) == (1, 2, 3, 4, 5, 0, 0, 0, *NUMBERS[:12], *[0] * 12)
    assert ran.warnings == ["48 bytes of indirect data are no multiple of 32"]


@pytest.mark.behaviour("G45-VFE-11", shows="action")
def test_no_length_fetches_nothing_and_data_past_the_bound_is_zeros() -> None:
    bound = {"indirect_object_access_upper_bound": INDIRECT + 0x1000, "indirect_object_access_upper_bound_modify_enable": 1}
    unmapped: Fields = {"indirect_data_length": 0, "indirect_data_start_address": 0x700_0000}
    past: Fields = {"indirect_data_length": 64, "indirect_data_start_address": 0xFE0}
    data = bytes(0xFE0) + words(NUMBERS[:16])
    ran = Media([media_object(inline=[7], **unmapped), media_object(inline=[8], **past)], indirect=data, bases=bound).run()
    assert ran.registers(0, 1, 2) == (7, *[0] * 15)
    assert ran.registers(1, 1, 3) == (8, *[0] * 7, *NUMBERS[:8], *[0] * 8)
    assert ran.warnings == [f"32 of 64 bytes of indirect data at {INDIRECT + 0xFE0:#x} are past the access upper bound "
                            f"{INDIRECT + 0x1000:#x}: zeros"]  # fmt: skip


@pytest.mark.behaviour("G45-VFE-17", shows="action")
def test_constants_stand_between_the_header_and_the_data() -> None:
    """Two registers of the constant URB entry from the second on."""
    curbe = words(range(500, 532))
    wants = {"constant_urb_entry_read_length": 2, "constant_urb_entry_read_offset": 1}
    ran = Media([media_object(inline=[9])], curbe=curbe, descriptor=wants).run()
    assert ran.registers(0, 1, 3) == (*range(508, 524), 9, *[0] * 7)


def test_constants_that_are_not_there_are_an_error() -> None:
    wants = {"constant_urb_entry_read_length": 3}
    with pytest.raises(DecodeError, match="no CONSTANT_BUFFER is valid"):
        Media([media_object()], descriptor=wants).run()
    with pytest.raises(DecodeError, match="96 bytes of constants from 0 on are asked for, the constant URB entry has 64"):
        Media([media_object()], descriptor=wants, curbe=bytes(64)).run()


@pytest.mark.behaviour("G45-VFE-07", "G45-TS-02", shows="action")
def test_the_header_names_what_the_interface_descriptor_has() -> None:
    """Descriptor 100, sixteen bytes each; its kernel is another one."""
    other = {"kernel_start_pointer": 0x3000, "sampler_state_pointer": 0x5A0}
    ran = Media([media_object(interface_descriptor_offset=100)], kernels=["", "", dump(2)], descriptors={100: other}).run()
    header = ran.header(0)
    assert header.interface_descriptor_pointer == DESCRIPTORS + 1600
    assert (header.sampler_state_pointer, header.binding_table_pointer) == (0x5A0, TABLE)
    assert (header.urb_handle, header.parent_thread_count, header.snapshot) == (0, 0, 0)


@pytest.mark.behaviour("G45-VFE-08", shows="action")
def test_only_the_first_sixteen_offsets_are_remapped_and_only_with_the_extension() -> None:
    tables = {"interface_descriptor_remap_table_0_7": 0x0000B000, "interface_descriptor_remap_table_8_15": 0x50000000}
    objects = [media_object("MEDIA_OBJECT_EX", interface_descriptor_offset=n) for n in (3, 15, 20)]
    found = []
    for extension in (("VFE_STATE_EX", tables), None):
        ran = Media(objects, extension=extension, kernels=[dump(1)]).run()
        found.append([(ran.header(n).interface_descriptor_pointer - DESCRIPTORS) // 16 for n in range(3)])
    assert found == [[11, 5, 20], [3, 15, 20]]


@pytest.mark.behaviour("G45-VFE-01", shows="action")
def test_the_extension_counts_only_if_it_is_enabled() -> None:
    """Its pointer stays; the remap table in it would lead to another kernel."""
    extension = ("VFE_STATE_EX", {"interface_descriptor_remap_table_0_7": 0x9})
    made = Media([media_object()], extension=extension)
    on, off = made.run(), Media([media_object()], extension=extension, pointers={"extended_vfe_state_enable": 0}).run()
    assert [ran.header(0).interface_descriptor_pointer - DESCRIPTORS for ran in (on, off)] == [9 * 16, 0]


@pytest.mark.behaviour("G45-VFE-02", shows="action")
def test_state_is_read_for_the_first_object_and_then_kept() -> None:
    """What is written to VFE_STATE between command and object counts, what is written behind an object does not, until the command comes
    again. The interface descriptors begin elsewhere each time."""

    def moved(number: int) -> list[int]:
        return store(GENERAL + VFE + 8, DESCRIPTORS + 16 * number)

    flush, pointers = pack("MI_FLUSH"), Media([]).state_pointers()
    ran = Media([moved(1), media_object(), flush, moved(2), media_object(), flush, pointers, media_object()]).run()
    assert [(ran.header(n).interface_descriptor_pointer - DESCRIPTORS) // 16 for n in range(3)] == [1, 1, 2]


@pytest.mark.behaviour("G45-VFE-03", shows="action")
def test_a_change_of_state_without_a_flush_is_remarked() -> None:
    pointers = Media([]).state_pointers()
    ran = Media([media_object(), pointers, media_object()]).run()
    assert ran.warnings == ["the media state changes after objects without a flush (G45 8736)"] and ran.gpu.counters.threads == 2
    assert not Media([media_object(), pack("MI_FLUSH"), pointers, media_object()]).run().warnings


@pytest.mark.behaviour("G45-VFE-04", shows="layout")
@pytest.mark.parametrize("mode", [3, 5, 6, 8, 15])
def test_reserved_modes_are_named(mode: int) -> None:
    with pytest.raises(DecodeError, match=f"vfe_mode {mode} is reserved"):
        Media([media_object()], vfe={"vfe_mode": mode}).run()


@pytest.mark.behaviour("G45-VFE-06", shows="layout")
def test_data_longer_than_an_entry_of_the_urb_is_refused() -> None:
    """An entry of two rows has room for four registers."""
    assert Media([media_object(inline=[1] * 32)], vfe={"urb_entry_allocation_size": 1}).run().gpu.counters.threads == 1
    with pytest.raises(DecodeError, match="160 bytes of data for a thread, an entry of the URB has 128"):
        Media([media_object(inline=[1] * 33)], vfe={"urb_entry_allocation_size": 1}).run()
    for entries in (0, 65):
        told = Media([media_object()], vfe={"number_of_urb_entries": entries}).run().warnings
        assert told == [f"VFE_STATE: number_of_urb_entries {entries} must be 1 to 64 (G45 9345-9347)"]
    told = Media([media_object()], vfe={"urb_entry_allocation_size": 256}).run().warnings
    assert told == ["VFE_STATE: entries of 257 rows; there may be 256 at most (G45 9342-9344)"]


@pytest.mark.behaviour("G45-VFE-12", shows="action")
def test_more_than_63_registers_are_refused_and_odd_places_remarked() -> None:
    fetched: Fields = {"indirect_data_length": 55 * 32, "indirect_data_start_address": 0}
    assert Media([media_object(inline=[1] * 64, **fetched)]).run().gpu.counters.threads == 1
    with pytest.raises(DecodeError, match="64 registers of inline and indirect data; there may be 63 at most"):
        Media([media_object(inline=[1] * 65, **fetched)]).run()
    told = Media([media_object(indirect_data_length=32, indirect_data_start_address=2)]).run().warnings
    assert told == ["indirect data at 0x2 should begin at a multiple of 4"]


@pytest.mark.behaviour("G45-VFE-13", shows="action")
def test_the_last_register_is_retained_for_the_next_indirect_object() -> None:
    """An object without indirect data lies between; it leaves what is retained."""
    first = media_object(retain=1, indirect_data_length=64, indirect_data_start_address=0)
    second = media_object(indirect_data_length=32, indirect_data_start_address=64)
    ran = Media([first, media_object(inline=[5]), second, second], indirect=words(NUMBERS), kernels=[dump(4)]).run()
    assert ran.registers(0, 2, 2) == tuple(NUMBERS[:16]) and ran.registers(1, 1, 3) == (5, *[0] * 23)
    assert ran.registers(2, 2, 2) == (*NUMBERS[8:16], *NUMBERS[16:24])
    assert ran.registers(3, 2, 2) == (*NUMBERS[16:24], *[0] * 8)


@pytest.mark.behaviour("G45-VFE-15", shows="action")
def test_commands_belong_to_modes() -> None:
    for name, mode in (("MEDIA_OBJECT_EX", "is"), ("MEDIA_OBJECT", "avc-it"), ("MEDIA_OBJECT", "vc1-it"), ("MEDIA_OBJECT", "avc-mc")):
        with pytest.raises(DecodeError, match=f"{name} cannot be used in mode {mode}"):
            Media([media_object(name, inline=[0] * 10)], mode=mode).run()
    ran = Media([media_object(), media_object("MEDIA_OBJECT_EX")]).run()
    assert ran.warnings == ["MEDIA_OBJECT_EX after MEDIA_OBJECT without a change of state: they cannot be used together (G45 11097-11099)"]


@pytest.mark.behaviour("G45-VFE-16", shows="action")
@pytest.mark.parametrize("mode", ["generic", "is", "avc-mc"])
def test_a_persistent_thread_has_inline_data_alone(mode: str) -> None:
    ran = Media([media_object("MEDIA_OBJECT_PRT", inline=range(31, 43), interface_descriptor_offset=4)], mode=mode).run()
    assert ran.registers(0, 1, 2) == (*range(31, 43), *[0] * 4)
    assert ran.header(0).interface_descriptor_pointer == DESCRIPTORS + 64


@pytest.mark.behaviour("G45-VFE-16", shows="action")
def test_a_persistent_object_is_at_most_sixteen_dwords() -> None:
    """What a longer one has behind these is not passed on."""
    long = media_object("MEDIA_OBJECT_PRT", inline=range(1, 13))
    ran = Media([[long[0] + 1, *long[1:], 13]]).run()
    assert ran.registers(0, 1, 2) == (*range(1, 13), *[0] * 4)
    with pytest.raises(DecodeError, match="MEDIA_OBJECT_PRT cannot be used in mode vld"):
        Media([media_object("MEDIA_OBJECT_PRT")], mode="vld", extension=("VLD_STATE", {})).run()


@pytest.mark.behaviour("G45-VFE-18", shows="action")
@pytest.mark.parametrize(("control", "expected"), [(0, [0, 1, 2, 3]), (1, [0, 0, 0, 0]), (2, [7, 8, 21, 22]), (3, [7, 9, 21, 33])])
def test_the_debug_counter(control: int, expected: list[int]) -> None:
    """It runs freely, is frozen, or begins with the number of the first object after each change of state, or of every object. A thread
    copies r0.6 into the row that its inline data names."""
    kernel = dump(1).replace("g0.6<0,1,0>", "g1.0<0,1,0>")
    change = [pack("MI_FLUSH"), Media([]).state_pointers()]
    objects = [media_object(inline=[n], object_id=number) for n, number in enumerate((7, 9, 21, 33))]
    ran = Media([*objects[:2], *change, *objects[2:]], kernels=[kernel], vfe={"debug_counter_control": control}).run()
    assert [ran.header(n).thread_count for n in range(4)] == expected


@pytest.mark.behaviour("G45-VFE-18", shows="action")
def test_the_extension_has_the_number_of_extended_objects() -> None:
    extension = ("VFE_STATE_EX", {"object_id": 0x30})
    objects = [media_object("MEDIA_OBJECT_EX"), media_object("MEDIA_OBJECT_EX")]
    ran = Media(objects, vfe={"debug_counter_control": 2}, extension=extension, kernels=[dump(1)]).run()
    assert [ran.header(n).thread_count for n in (0x30, 0x31)] == [0x30, 0x31]


@pytest.mark.behaviour("G45-VFE-20", shows="layout")
@pytest.mark.behaviour("G45-TS-20", shows="action")
def test_live_roots_have_scratch_space_and_an_id_of_their_own() -> None:
    """Three KiB each, one behind the other; the header has the field as it is."""
    kernel = dump(1)
    scratch = {"per_thread_scratch_space": 2, "scratch_space_base_pointer": 0x8000, "maximum_number_of_threads": 2}
    ran = Media([media_object() for _ in range(3)], vfe=scratch, kernels=[kernel]).run()
    headers = [ran.header(n) for n in range(3)]
    assert [header.scratch_space_pointer for header in headers] == [0x8000, 0x8C00, 0x9800]
    assert [header.fftid for header in headers] == [0, 1, 2] and {header.per_thread_scratch_space for header in headers} == {2}


@pytest.mark.behaviour("G45-VFE-22", shows="action")
def test_fences_of_zero_before_the_media_pipeline_is_selected_are_fine() -> None:
    fences = {f"{name}_unit_urb_reallocation_request": 1 for name in ("vs", "gs", "clip", "sf", "vfe", "cs")}
    zero = pack("URB_FENCE", **fences, vfe_fence=0)
    ran = Media([media_object(inline=[3])], before=[pack("PIPELINE_SELECT"), zero, pack("PIPELINE_SELECT", pipeline_selection=1)]).run()
    assert ran.registers(0, 1)[0] == 3 and not ran.warnings


def test_missing_pointers_are_an_error() -> None:
    made = Media([media_object()])
    made.state_pointers = lambda: pack("MI_FLUSH")  # type: ignore[method-assign]
    with pytest.raises(DecodeError, match="there is no MEDIA_STATE_POINTERS"):
        made.run()


def test_unmapped_indirect_data_names_its_place() -> None:
    with pytest.raises(SoftgenError, match="indirect data"):
        Media([media_object(indirect_data_length=32, indirect_data_start_address=0x700_0000)]).run()


def test_constants_of_both_pipelines_are_the_same_bytes() -> None:
    """What CONSTANT_BUFFER loaded stays when memory changes."""
    change = store(CURBE, 77)
    ran = Media([change, media_object()], curbe=words(range(1, 17)), descriptor={"constant_urb_entry_read_length": 1}).run()
    assert ran.registers(0, 1) == tuple(range(1, 9))


@pytest.mark.behaviour("G45-VFE-23", shows="action")
def test_odd_numbers_of_register_blocks_are_remarked_once() -> None:
    """The field has one less; the second object finds the descriptor read already."""
    told = Media([media_object(), media_object()], descriptor={"grf_register_blocks": 4}).run().warnings
    assert told == ["interface descriptor 0 has 5 blocks of registers; their number must be even (G45 9548-9551)"]


@pytest.mark.behaviour("G45-TS-22", shows="layout")
def test_scoreboard_fields_of_later_hardware_are_remarked_and_ignored() -> None:
    ran = Media([media_object(inline=[4])], extension=("VFE_STATE_EX", {}), patch={GENERAL + EXTENSION + 16: words([0x80000001])}).run()
    assert ran.warnings == ["VFE_STATE_EX: dwords 4 to 6 have no meaning before Ironlake; they must be 0 (G45 9463-9502)"]
    assert ran.registers(0, 1)[0] == 4


@pytest.mark.behaviour("G45-KRN-05", shows="action")
def test_motion_compensation_of_a_host_is_generic_mode() -> None:
    """A macroblock's parameters inline, its residuals indirect: six blocks of four registers behind two."""
    residual = words(range(6 * 32))
    fetch: Fields = {"indirect_data_length": len(residual), "indirect_data_start_address": 0}
    ran = Media([media_object(inline=range(50, 60), **fetch)], indirect=residual, kernels=[dump(27)]).run()
    assert ran.registers(0, 1, 2)[:10] == tuple(range(50, 60)) and ran.data(0, 3, 24) == residual


def test_gm965_has_generic_mode_and_no_extension() -> None:
    assert Media([media_object(inline=[6])], device="gm965").run().registers(0, 1)[0] == 6
    with pytest.raises(DecodeError, match="there is no VFE_STATE_EX before G45"):
        Media([media_object()], device="gm965", pointers={"extended_vfe_state_enable": 1}).run()
