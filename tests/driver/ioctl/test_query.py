"""What each GPU says about itself."""

import errno
import os
import struct
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits.generation import devices
from softgen.driver.ioctl import query as answers
from softgen.driver.uapi import i915_drm as i915
from softgen.driver.uapi.kernel_tables import kernel, runtimes
from softgen.driver.uapi.uapi import ENGINE_INFO, ENGINES_HEAD, QUERY_ITEM, REGION, TOPOLOGY
from tests.driver.program import Program, served

GPUS = list(devices())


def param(program: Program, number: int) -> int:
    value = program.memory(4)
    program.ioctl("DRM_IOCTL_I915_GETPARAM", param=number, value=value.address)
    return int(struct.unpack("<i", bytes(value))[0])


def query(program: Program, kind: int) -> bytes | int:
    """Asked as drivers do: first for the size, then for the answer."""
    item = program.memory(QUERY_ITEM.pack(SimpleNamespace(kind=kind, size=0, flags=0, data=0)))
    program.ioctl("DRM_IOCTL_I915_QUERY", count=1, items=item.address)
    size = QUERY_ITEM.unpack(bytes(item)).size
    if size < 0:
        return int(size)
    data = program.memory(size)
    item.buffer.raw = QUERY_ITEM.pack(SimpleNamespace(kind=kind, size=size, flags=0, data=data.address))
    program.ioctl("DRM_IOCTL_I915_QUERY", count=1, items=item.address)
    return bytes(data)


def test_every_gpu_has_its_facts_and_a_driver() -> None:
    for name in GPUS:
        assert kernel(name).engines[0] == "rcs0"
        assert any(name in runtime.gpus for runtime in runtimes())
    assert {gpu for runtime in runtimes() for gpu in runtime.gpus} == set(GPUS)


@pytest.mark.parametrize("name", GPUS)
def test_each_gpu_is_what_devices_toml_says(name: str) -> None:
    device = devices()[name]
    with served(name) as gpu:
        program = gpu.program()
        assert param(program, 4) == device.pci_id
        assert param(program, 51) == device.limit("timestamp_hz")
        engines = query(program, 2)
        assert isinstance(engines, bytes)
        count = ENGINES_HEAD.unpack(engines).count
        rows = [ENGINE_INFO.unpack(engines[16 + 56 * i :]) for i in range(count)]
        names = [f"{('rcs', 'bcs', 'vcs', 'vecs')[row.kind]}{row.instance}" for row in rows]
        assert tuple(names) == kernel(name).engines
        assert [(row.flags, row.logical) for row in rows] == [(1, row.instance) for row in rows]
        assert not any(engines[4:16]) and not any(getattr(row, f"r{number}") for row in rows for number in range(6)), "reserved"
        topology = query(program, 1)
        if not kernel(name).topology:
            assert topology == -errno.ENODEV
            return
        assert isinstance(topology, bytes)
        head = TOPOLOGY.unpack(topology)
        bits = int.from_bytes(topology[16 + head.eu_offset :], "little").bit_count()
        assert bits == device.limit("eus") == param(program, 34)
        assert int.from_bytes(topology[16 + head.subslice_offset : 16 + head.eu_offset], "little").bit_count() == device.limit("subslices")


@pytest.mark.parametrize("name, expected", [("g45", [0, 0]), ("bdw", [0, 0, 0, 0]), ("kbl", [0, 0, 1, 0]), ("icl", [0, 0, 3, 2])])
def test_what_video_engines_can_do(name: str, expected: list[int]) -> None:
    """I915_VIDEO_CLASS_CAPABILITY_HEVC (1) and I915_VIDEO_AND_ENHANCE_CLASS_CAPABILITY_SFC (2); engines of other classes have none."""
    with served(name) as gpu:
        found = query(gpu.program(), i915.DRM_I915_QUERY_ENGINE_INFO)
        assert isinstance(found, bytes)
        assert [row.capabilities for row in ENGINE_INFO.unpack_all(found[ENGINES_HEAD.size :])] == expected


def test_units_of_a_gpu_with_two_slices() -> None:
    """drm_i915_query_topology_info, with two of three slices, three of four subslices in each, eight EUs in each of those."""
    limits = {"slices": 2, "subslices": 6, "eus": 48}
    gpu: Any = SimpleNamespace(device=SimpleNamespace(limit=limits.__getitem__), kernel=SimpleNamespace(topology=(3, 4, 8)))
    topology = answers.topology(gpu)
    assert isinstance(topology, bytes) and answers.subslice_mask(gpu) == 0b111
    assert struct.unpack_from("<8H", topology) == (0, 3, 4, 8, 1, 1, 4, 1)  # flags, how many there could be, offsets and strides
    slices, subslices, eus = topology[16:17], topology[17:20], topology[20:]
    assert (slices, subslices, eus) == (b"\x03", b"\x07\x07\0", 2 * (3 * b"\xff" + b"\0") + bytes(4))
    gpu.kernel.topology = 2, 9, 17  # the masks of more than eight take more bytes
    wide = answers.topology(gpu)
    assert isinstance(wide, bytes) and struct.unpack_from("<8H", wide) == (0, 2, 9, 17, 1, 2, 5, 3) and wide[16:21] == b"\3\7\0\7\0"


YES, NO = (5, 8, 9, 12, 13, 15, 16, 19, 21, 24, 25, 26, 29, 30, 37, 43, 44, 45, 48, 49, 52, 53, 55, 56), (7, 14, 20, 23, 27, 36, 38, 39, 54)


@pytest.mark.parametrize("name, others", [
    ("kbl", {4: 0x5916, 6: 32, 10: 1, 11: 1, 17: 1, 18: 2, 22: 1, 28: 0, 31: 0, 32: 2, 33: 3, 34: 24, 35: 2, 40: 4, 41: 31, 42: 0, 46: 1,
             47: 7, 50: 15, 51: 12_000_000}),
    ("hsw", {4: 0x412, 6: 32, 10: 1, 11: 1, 17: 1, 18: 1, 22: 1, 28: 10, 31: 0, 32: 6, 33: 2, 34: 20, 35: 2, 40: 4, 41: 0, 42: None, 46: 1,
             47: 3, 50: 1, 51: 12_500_000}),
    ("g45", {4: 0x2E22, 6: 16, 10: 1, 11: 0, 17: 0, 18: 0, 22: 0, 28: 0, 31: 0, 32: 3, 33: None, 34: None, 35: 2, 40: 4, 41: 0, 42: None,
             46: None, 47: None, 50: 0, 51: 12_500_000}),
])  # fmt: skip
def test_parameters_of_a_gpu(name: str, others: dict[int, int | None]) -> None:
    """By the kernel's number (i915_drm.h); None: ENODEV."""
    expected = {**dict.fromkeys(YES, 1), **dict.fromkeys(NO, 0), **others}
    assert set(expected) == set(range(4, 57))
    found = dict[int, int | None]()
    with served(name) as gpu:
        program = gpu.program()
        for number in expected:
            try:
                found[number] = param(program, number)
            except OSError as error:
                assert error.errno == errno.ENODEV
                found[number] = None
    assert found == expected


@pytest.mark.parametrize("name", GPUS)
def test_no_gpu_says_that_firmware_runs_on_its_video_microcontroller(name: str) -> None:
    """I915_PARAM_HUC_STATUS: 0 where there is one, else ENODEV; drivers offer modes that nothing would encode where it says more."""
    with served(name) as gpu:
        if kernel(name).huc:
            assert param(gpu.program(), i915.I915_PARAM_HUC_STATUS) == 0
            return
        with pytest.raises(OSError, match="No such device"):
            param(gpu.program(), i915.I915_PARAM_HUC_STATUS)
    assert name not in ("skl", "kbl", "icl")


def test_questions_without_an_answer() -> None:
    with served("skl") as gpu:
        program = gpu.program()
        with pytest.raises(OSError, match="Invalid"):
            param(program, 4711)
        assert gpu.log == ["GETPARAM 4711 is not known"]
        assert query(program, 3) == query(program, 99) == -errno.EINVAL and query(program, 5) == -errno.ENODEV


def test_a_buffer_too_small_for_the_answer() -> None:
    with served("icl") as gpu:
        program = gpu.program()
        item = program.memory(QUERY_ITEM.pack(SimpleNamespace(kind=2, size=20, flags=0, data=program.memory(20).address)))
        program.ioctl("DRM_IOCTL_I915_QUERY", count=1, items=item.address)
        assert QUERY_ITEM.unpack(bytes(item)).size == -errno.EINVAL


def test_several_questions_at_once() -> None:
    """Each has its own answer, in its own place; one that has none does not concern the others."""
    with served("kbl") as gpu:
        program = gpu.program()
        items = program.memory(b"".join(QUERY_ITEM.pack(SimpleNamespace(kind=kind, size=0, flags=0, data=0)) for kind in (4, 99, 2, 1)))
        program.ioctl("DRM_IOCTL_I915_QUERY", count=4, items=items.address)
        found = [item.size for item in QUERY_ITEM.unpack_all(bytes(items))]
        alone = [query(program, kind) for kind in (4, 99, 2, 1)]
        assert found == [each if isinstance(each, int) else len(each) for each in alone] and found[1] == -errno.EINVAL


def test_an_unknown_parameter_is_logged_once() -> None:
    with served("kbl") as gpu:
        program = gpu.program()
        for number in (1000, 1001, 1000, 1000):
            with pytest.raises(OSError, match="Invalid"):
                program.ioctl("DRM_IOCTL_I915_GETPARAM", param=number, value=program.memory(4).address)
        assert gpu.log == ["GETPARAM 1000 is not known", "GETPARAM 1001 is not known"]


CAPABILITIES = {1: 1, 2: 1, 3: 24, 4: 0, 5: 3, 6: 1, 7: 0, 8: 256, 9: 256, 0x10: 1, 0x11: 0, 0x12: 1, 0x13: 1, 0x14: 1}


def test_capabilities_of_the_driver() -> None:
    """By the kernel's number (drm.h)."""
    with served("kbl") as gpu:
        program = gpu.program()
        assert {number: program.ioctl("DRM_IOCTL_GET_CAP", capability=number).value for number in CAPABILITIES} == CAPABILITIES
        for number in (0, 0xA, 0xF, 0x15):
            with pytest.raises(OSError, match="Invalid"):
                program.ioctl("DRM_IOCTL_GET_CAP", capability=number)


def test_who_is_asked_for_versions_and_names() -> None:
    with served("kbl") as gpu:
        card = gpu.program("card0")
        found = card.ioctl("DRM_IOCTL_SET_VERSION", interface_major=1, interface_minor=1, driver_major=-1, driver_minor=-1)
        assert (found.interface_major, found.interface_minor, found.driver_major, found.driver_minor) == (1, 4, 1, 6)
        room = card.memory(16)
        assert card.ioctl("DRM_IOCTL_GET_UNIQUE").size == 16 == card.ioctl("DRM_IOCTL_GET_UNIQUE", unique=room.address, size=15).size
        assert bytes(room) == bytes(16)
        card.ioctl("DRM_IOCTL_GET_UNIQUE", unique=room.address, size=16)
        assert bytes(room) == b"pci:0000:00:02.0" and card.ioctl("DRM_IOCTL_GET_MAGIC").magic == 1
        client = card.ioctl("DRM_IOCTL_GET_CLIENT", index=0)
        assert (client.auth, client.pid, client.uid, client.magic, client.uses) == (1, os.getpid(), os.getuid(), 0, 0)
        with pytest.raises(OSError, match="Invalid"):
            card.ioctl("DRM_IOCTL_GET_CLIENT", index=1)
        aperture = card.ioctl("DRM_IOCTL_I915_GEM_GET_APERTURE")
        assert (aperture.size, aperture.available) == (1 << 32, (1 << 32) - (16 << 20))


def test_version_is_told_in_two_steps() -> None:
    with served("kbl") as gpu:
        program = gpu.program()
        first = program.ioctl("DRM_IOCTL_VERSION")
        assert (first.major, first.minor, first.name_size) == (1, 6, 4)
        room = program.memory(first.name_size)
        program.ioctl("DRM_IOCTL_VERSION", name=room.address, name_size=4)
        assert bytes(room) == b"i915" and (first.date_size, first.description_size) == (8, 14)
        date, description = program.memory(8), program.memory(14)
        program.ioctl("DRM_IOCTL_VERSION", date=date.address, date_size=4, description=description.address, description_size=99)
        assert bytes(date) == b"2020\0\0\0\0" and bytes(description) == b"Intel Graphics"  # no more than there is room for


def test_memory_is_the_hosts() -> None:
    with served("kbl") as gpu:
        found = query(gpu.program(), 4)
        assert isinstance(found, bytes) and len(found) == 16 + 88
        region = REGION.unpack(found[16:])
        assert found[:16] == struct.pack("<4I", 1, 0, 0, 0) and (region.kind, region.instance) == (0, 0), "one: system memory"
        assert region.probed == region.unallocated == region.visible == region.unallocated_visible > 1 << 28
        assert not any(getattr(region, f"r{number}") for number in (0, *range(2, 8))), "reserved"


@pytest.mark.parametrize("host, limit, size", [(8 << 30, 1 << 30, 1 << 30), (1 << 30, 8 << 30, 1 << 30)])
def test_memory_is_what_the_host_has_and_the_server_may_take(host: int, limit: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "host_memory", lambda: host)
    gpu: Any = SimpleNamespace(budget=SimpleNamespace(limit=limit))
    assert REGION.unpack(answers.regions(gpu)[16:]).probed == size


def test_the_clock_moves() -> None:
    with served("kbl") as gpu:
        program = gpu.program()
        first, second = (program.ioctl("DRM_IOCTL_I915_REG_READ", offset=0x2358 | 1).value for _ in range(2))
        assert 0 < second - first < 12_000_000 and second < 1 << 36


@pytest.mark.parametrize("offset, value", [(0x2358, 0x12345678), (0x2359, 0xF_1234_5678), *((offset, None) for offset in (
    0, 1, 0x2000, 0x2350, 0x235A, 0x235C, 0x235F, 0x2360, 0x1_0000_2358))])  # fmt: skip
def test_a_program_may_read_the_timestamp_register(offset: int, value: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit 0 (I915_REG_READ_8B_WA) asks for all of it; no other bit below the 8 bytes is known, and no other register may be read."""
    monkeypatch.setattr(answers, "host_clock", lambda device: lambda: 0xF_1234_5678)
    with served("kbl") as gpu:
        program = gpu.program()
        if value is not None:
            assert program.ioctl("DRM_IOCTL_I915_REG_READ", offset=offset).value == value
            return
        with pytest.raises(OSError, match="Invalid"):
            program.ioctl("DRM_IOCTL_I915_REG_READ", offset=offset)


def test_what_is_not_known_is_said_once_and_refused_each_time() -> None:
    with served("kbl") as gpu:
        program = gpu.program("card0")
        for _ in range(2):
            with pytest.raises(OSError, match="Invalid"):
                program.raw(0x9E, bytes(8))
        with pytest.raises(OSError) as found:
            program.raw(0xC6, bytes(24))  # DRM_IOCTL_MODE_CREATE_LEASE
        assert found.value.errno == errno.EOPNOTSUPP
        assert len(gpu.log) == 1 and "ioctl 0x9e" in gpu.log[0]
        assert gpu.shared.unknown == {"ioctl 0x9e": 2, "DRM_IOCTL_MODE_CREATE_LEASE": 1}


@pytest.mark.parametrize("name, found", [("hsw", (2, 20)), ("bdw", (3, 24)), ("icl", (8, 64)), ("ivb", None), ("g45", None)])
def test_subslices_and_eus_are_told_where_the_kernel_knows_them(name: str, found: tuple[int, int] | None) -> None:
    """From Haswell on."""
    with served(name) as gpu:
        program = gpu.program()
        if found is not None:
            assert (param(program, i915.I915_PARAM_SUBSLICE_TOTAL), param(program, i915.I915_PARAM_EU_TOTAL)) == found
            return
        for number in (i915.I915_PARAM_SUBSLICE_TOTAL, i915.I915_PARAM_EU_TOTAL):
            with pytest.raises(OSError) as refused:
                param(program, number)
            assert refused.value.errno in (errno.ENODEV, errno.EINVAL)
