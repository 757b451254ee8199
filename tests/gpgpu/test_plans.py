"""Walker plans: a kernel dispatched again with other constants and another binding table, and what makes a plan unusable."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from softgen.device.gpu import GpuDevice
from softgen.gpgpu import plans, walker
from softgen.gpgpu.plans import WalkerPlans
from softgen.memory.address_space import AddressSpace
from softgen.threads.dispatcher_protocol import Dispatcher
from softgen.trace.work import Work
from tests.gpgpu.engines import engines
from tests.gpgpu.job import DYNAMIC, INDIRECT, SURFACES, TABLE, Job, dwords, vector_add

MOVED, ELSEWHERE = 0x900, 0x200  # where the next binding table and the next constants are


@pytest.fixture(params=engines(), ids=lambda item: item.name)
def groups(request: pytest.FixtureRequest) -> Dispatcher:
    made: Dispatcher = request.param.groups()
    return made


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Dispatches that were made from state, not from a plan."""
    found: list[object] = []
    real = walker.dispatch

    def dispatch(*values: Any, **named: Any) -> Any:
        found.append(values)
        return real(*values, **named)

    monkeypatch.setattr(plans.walker, "dispatch", dispatch)
    return found


class Runtime:
    """A hardware context in which a kernel is dispatched over and over."""

    def __init__(self, groups: Dispatcher) -> None:
        self.job = vector_add("skl")
        self.gpu, self.space = GpuDevice(self.job.device, dispatcher=groups), self.job.memory()
        self.gpu.execute(Work("render", self.space, 0x10000))

    def walker(self, **values: Any) -> list[int]:
        data = self.job.constants()
        return self.job.pack("GPGPU_WALKER", **{"indirect_data_length": len(data), "indirect_data_start_address": INDIRECT, "simd_size": 1,
                                                "thread_group_id_x_dimension": 4, "thread_group_id_y_dimension": 1,
                                                "thread_group_id_z_dimension": 1, "right_execution_mask": 0xFFFFFFFF,
                                                "bottom_execution_mask": 0xFFFFFFFF, **values})  # fmt: skip

    def again(self, *before: list[int], **values: Any) -> tuple[int, ...]:
        load = self.job.pack("MEDIA_INTERFACE_DESCRIPTOR_LOAD", interface_descriptor_total_length=32,
                             interface_descriptor_data_start_address=0)  # fmt: skip
        commands = [*before, self.job.pack("MEDIA_STATE_FLUSH"), load, self.walker(**values), self.job.pack("MI_BATCH_BUFFER_END")]
        batch = b"".join(dwords(*command) for command in commands)
        self.space.write(INDIRECT + 0x800, batch)
        self.space.write(self.job.address(1), bytes(256))
        self.gpu.execute(Work("render", self.space, INDIRECT + 0x800))
        found = self.space.read(self.job.address(1), 256)
        return tuple(memoryview(found).cast("I"))


def test_a_kernel_is_planned_once(groups: Dispatcher, made: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is state collected again that no command has set in between."""
    runtime, collected = Runtime(groups), list[object]()
    monkeypatch.setattr(plans.front_end, "dispatch_context", collected.append)
    for _ in range(3):
        assert runtime.again() == tuple(range(1000, 1064))
    assert len(made) == 1 and not collected


def test_other_constants_of_a_plan_count(groups: Dispatcher, made: list[object]) -> None:
    """Elsewhere, or rewritten in place."""
    runtime = Runtime(groups)
    job = runtime.job
    runtime.space.write(INDIRECT + ELSEWHERE, dwords(5000, *[0] * 7) + job.own[0])
    assert runtime.again(indirect_data_start_address=INDIRECT + ELSEWHERE) == tuple(range(5000, 5064))
    runtime.space.write(INDIRECT, dwords(7000, *[0] * 7))
    assert runtime.again() == tuple(range(7000, 7064)) and len(made) == 1


def test_a_binding_table_elsewhere_is_no_new_kernel(groups: Dispatcher, made: list[object]) -> None:
    """The next table names the surfaces the other way round: the kernel reads what it wrote before."""
    runtime = Runtime(groups)
    assert runtime.again() == tuple(range(1000, 1064))
    space, job = runtime.space, runtime.job
    space.write(SURFACES + MOVED, dwords(0, 128))  # the output is a third surface
    space.write(SURFACES + 128, job.surface(0, job.buffers[0]))
    values = Job(job.kernel, job.buffers, shared=job.shared, own=job.own, descriptor={"binding_table_pointer": MOVED})
    space.write(DYNAMIC, values.dynamic()[:32])
    runtime.again()
    assert tuple(memoryview(space.read(job.address(0), 256)).cast("I")) == tuple(range(1000, 1064)) and len(made) == 1
    space.write(DYNAMIC, Job(job.kernel, job.buffers, shared=job.shared, own=job.own).dynamic()[:32])
    assert runtime.again() == tuple(range(2000, 2064)) and len(made) == 1 and TABLE != MOVED


def test_another_grid_is_another_plan(groups: Dispatcher, made: list[object]) -> None:
    runtime = Runtime(groups)
    assert runtime.again(thread_group_id_x_dimension=2) == (*range(1000, 1032), *[0] * 32)
    assert runtime.again() == tuple(range(1000, 1064)) and len(made) == 2


def test_state_that_is_set_again_to_the_same_values_keeps_the_plan(groups: Dispatcher, made: list[object]) -> None:
    runtime = Runtime(groups)
    runtime.again()
    same = runtime.job.pack("STATE_BASE_ADDRESS", dynamic_state_base_address_modify_enable=1, dynamic_state_base_address=DYNAMIC)
    assert runtime.again(same) == tuple(range(1000, 1064)) and len(made) == 1


def test_bases_that_change_are_another_plan(groups: Dispatcher, made: list[object]) -> None:
    """Constants are relative to the indirect object base."""
    runtime = Runtime(groups)
    runtime.again()
    runtime.space.write(INDIRECT + ELSEWHERE, dwords(5000, *[0] * 7) + runtime.job.own[0])
    moved = runtime.job.pack("STATE_BASE_ADDRESS", indirect_object_base_address_modify_enable=1,
                             indirect_object_base_address=INDIRECT)  # fmt: skip
    assert runtime.again(moved, indirect_data_start_address=ELSEWHERE) == tuple(range(5000, 5064)) and len(made) == 2


def test_front_end_state_that_changes_is_another_plan(groups: Dispatcher, made: list[object]) -> None:
    runtime = Runtime(groups)
    runtime.again()
    runtime.again(runtime.job.pack("MEDIA_VFE_STATE", per_thread_scratch_space=1, scratch_space_base_pointer=0x400))
    assert len(made) == 2


def test_plans_are_limited(groups: Dispatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MOST_PLANS", 2)
    runtime = Runtime(groups)
    kept = runtime.gpu.saved_context(0, "render").pipelines[WalkerPlans]
    for count in (1, 2, 3, 4):
        assert runtime.again(thread_group_id_x_dimension=count)[16 * count - 1] == 1000 + 16 * count - 1
        assert 1 <= len(kept._plans) <= 2


def test_a_copy_of_a_context_makes_its_own_plans(groups: Dispatcher) -> None:
    runtime = Runtime(groups)
    kept = runtime.gpu.saved_context(0, "render").pipelines[WalkerPlans]
    assert kept._plans and not copy.deepcopy(kept)._plans


def test_a_plan_belongs_to_an_address_space(groups: Dispatcher, made: list[object]) -> None:
    """The same commands in another space read other memory."""
    runtime = Runtime(groups)
    runtime.again()
    job = vector_add("skl")
    job.shared = dwords(9000, *[0] * 7)
    other: AddressSpace = job.memory()
    runtime.space = other
    assert runtime.again() == tuple(range(9000, 9064)) and len(made) == 2
