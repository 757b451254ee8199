"""Rules for commands: each one broken and kept, and how that is told."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import replace
from typing import Any, cast

import pytest

from softgen.bits.catalogue import layout
from softgen.device.gpu import COMMANDS, GpuDevice
from softgen.errors import SoftgenError, Unsupported
from softgen.streamer import rules
from softgen.trace.work import Work
from tests.streamer.bench import BATCH, DATA, GPR, OTHER, Bench, count_draw

STALL = {"command_streamer_stall_enable": 1}
POST = {"post_sync_operation": 1, "address": DATA}
RENDER_RULES = {
    "ICL-PC-10": ({}, {**STALL}, "nothing is asked for"),
    "ICL-PC-12": (
        {"lri_post_sync_operation": 1, "address": GPR, **POST},
        {"lri_post_sync_operation": 1, "address": GPR},
        "exclude each other",
    ),
    "ICL-PC-13": ({"protected_memory_enable": 1}, {"protected_memory_enable": 1, **STALL}, "protected_memory_enable needs"),
    "ICL-PC-16": ({"generic_media_state_clear": 1}, {"generic_media_state_clear": 1, **STALL}, "generic_media_state_clear needs"),
    "ICL-PC-18": (
        {"indirect_state_pointers_disable": 1},
        {"indirect_state_pointers_disable": 1, **STALL},
        "indirect_state_pointers_disable needs",
    ),
    "ICL-PC-19": ({"store_data_index": 1}, {"store_data_index": 1, **POST}, "store_data_index needs"),
    "ICL-PC-20": ({"psd_sync_enable": 1}, {"psd_sync_enable": 1, **POST}, "psd_sync_enable needs"),
    "ICL-PC-21": ({"tlb_invalidate": 1, **POST}, {"tlb_invalidate": 1, **POST, **STALL}, "tlb_invalidate needs command"),
    "ICL-PC-22": ({"tlb_invalidate": 1, **STALL}, {"tlb_invalidate": 1, **POST, **STALL}, "tlb_invalidate needs a post"),
    "ICL-PC-23": ({"lri_post_sync_operation": 1, **POST}, POST, "exclude each other"),
    "ICL-PC-26": ({"protected_memory_application_id": 1}, {"protected_memory_application_id": 1, **STALL}, "application_id needs"),
}
POSITION_ONLY_RULES = {
    "ICL-PC-11": "protected_memory_disable",
    "ICL-PC-14": "protected_memory_enable",
    "ICL-PC-17": "generic_media_state_clear",
    "ICL-PC-25": "notify_enable",
    "ICL-PC-27": "protected_memory_application_id",
}


def remarks(engine: str, **values: int) -> list[str]:
    bench = Bench("icl")
    bench.gpu.registers.write(0x2080, OTHER)  # a status page
    bench.run(bench.pack("PIPE_CONTROL", **({"destination_address_type": 1} if values else {}), **values), engine=engine)
    return list(bench.gpu.remarks)


@pytest.mark.behaviour(
    "ICL-PC-10", "ICL-PC-12", "ICL-PC-13", "ICL-PC-16", "ICL-PC-18", "ICL-PC-19", "ICL-PC-20", "ICL-PC-21", "ICL-PC-22",
    "ICL-PC-23", "ICL-PC-26",
    shows="action")
@pytest.mark.parametrize("rule", RENDER_RULES)
def test_a_rule_of_pipe_control_that_is_broken_is_told(rule: str) -> None:
    broken, kept, says = RENDER_RULES[rule]
    assert any(says in remark for remark in remarks("render", **broken)), remarks("render", **broken)
    assert not any(says in remark for remark in remarks("render", **kept))


@pytest.mark.behaviour("ICL-PC-11", "ICL-PC-14", "ICL-PC-17", "ICL-PC-24", "ICL-PC-25", "ICL-PC-27", "ICL-PC-31", shows="action")
@pytest.mark.parametrize(
    "field",
    [
        *POSITION_ONLY_RULES.values(),
        "depth_stall_enable",
        "render_target_cache_flush_enable",
        "depth_cache_flush_enable",
        "stall_at_pixel_scoreboard",
        "dc_flush_enable",
        "post_sync_operation",
    ],
)
def test_what_is_not_for_the_position_only_engine_is_told(field: str) -> None:
    values = {field: 2 if field == "post_sync_operation" else 1, "address": DATA, **STALL}
    assert any("not for the position-only engine" in remark for remark in remarks("position_only", **values))
    assert not any("not for the position-only engine" in remark for remark in remarks("render", **values))


@pytest.mark.behaviour("ICL-PC-15", shows="action")
def test_a_reset_that_no_product_may_use_is_told_and_refused() -> None:
    bench = Bench("icl")
    with pytest.raises(Unsupported, match="global_snapshot_count_reset"):
        bench.run(bench.pack("PIPE_CONTROL", global_snapshot_count_reset=1))
    assert [remark.rpartition(": ")[2] for remark in bench.gpu.remarks] == [
        "global_snapshot_count_reset needs command_streamer_stall_enable",
        "global_snapshot_count_reset is not to be used",
    ]


@pytest.mark.behaviour("ICL-PC-32", shows="action")
@pytest.mark.parametrize("selected, told", [(0, False), (2, True)])
def test_a_texture_invalidation_needs_a_stall_while_compute_is_selected(selected: int, told: bool) -> None:
    bench = Bench("icl")
    bench.run(
        bench.pack("PIPELINE_SELECT", pipeline_selection=selected, mask_bits=3),
        bench.pack("PIPE_CONTROL", texture_cache_invalidation_enable=1),
        *(
            bench.pack("PIPE_CONTROL", **{name: 1})
            for name in ("instruction_cache_invalidate_enable", "state_cache_invalidation_enable", "constant_cache_invalidation_enable")
        ),
    )
    assert [("texture" in remark) for remark in bench.gpu.remarks] == [True] * told


@pytest.mark.behaviour("ICL-SYNC-12", shows="action")
def test_a_depth_count_should_be_stalled_for() -> None:
    told = "write ps depth count needs depth_stall_enable"
    assert any(told in remark for remark in remarks("render", post_sync_operation=2, address=DATA))
    assert not any(told in remark for remark in remarks("render", post_sync_operation=2, address=DATA, depth_stall_enable=1))


@pytest.mark.behaviour("ICL-CMD-06", shows="action")
@pytest.mark.parametrize("flush, told", [({"command_streamer_stall_enable": 1}, False), ({"dc_flush_enable": 1}, True)])
def test_the_pipeline_must_be_flushed_before_another_is_selected(flush: dict[str, int], told: bool) -> None:
    """Work is started where the batch says so with an interrupt."""
    bench = Bench("icl")

    def start(event: object) -> None:
        execution.counters.dispatches += 1

    bench.gpu.interrupts.on_event = start
    select = bench.pack("PIPELINE_SELECT", pipeline_selection=0, mask_bits=3)
    bench.put(BATCH, select, bench.pack("MI_USER_INTERRUPT"), bench.pack("MI_BATCH_BUFFER_END"))
    execution = bench.gpu.begin(Work("render", bench.space, BATCH))
    assert execution.run() and bench.gpu.counters.dispatches == 1
    assert not bench.gpu.remarks
    bench.run(bench.pack("PIPE_CONTROL", **flush), select)
    assert [remark.rpartition(": ")[2] for remark in bench.gpu.remarks] == ["the pipeline that was active has not been flushed"] * told


@pytest.mark.behaviour("ICL-CMD-06", shows="action")
@pytest.mark.parametrize("between", ["nothing", "a wait", "a long wait", "an error"])
@pytest.mark.parametrize("traced", [False, True])
def test_a_draw_before_another_pipeline_is_selected_is_not_flushed(traced: bool, between: str) -> None:
    """Commands one by one, and as they come where nothing is traced; in one go, after a wait, and in the next submission after an error."""
    bench = Bench("icl")
    bench.gpu = GpuDevice(bench.device, trace=(lambda topic, text: None) if traced else None)
    bench.gpu.interface = replace(bench.gpu.interface, commands={**COMMANDS, "3DPRIMITIVE": count_draw})
    wait = bench.pack("MI_SEMAPHORE_WAIT", wait_mode=1, compare_operation=4, semaphore_data_dword=1, semaphore_address=DATA)
    parts = {"nothing": [], "an error": [[0xFFFFFFFF]]}
    bench.put(BATCH, bench.pack("3DPRIMITIVE"), *parts.get(between, [wait]), select := bench.pack("PIPELINE_SELECT", mask_bits=3),
              bench.pack("MI_BATCH_BUFFER_END"))  # fmt: skip
    execution = bench.gpu.begin(Work("render", bench.space, BATCH))
    if between == "a long wait":
        assert not execution.run() and execution.streamer.saved.unflushed
    bench.put(DATA, [1])
    if between == "an error":
        with pytest.raises(SoftgenError):
            execution.run()
        bench.run(select)
    else:
        assert execution.run()
    assert [remark.rpartition(": ")[2] for remark in bench.gpu.remarks] == ["the pipeline that was active has not been flushed"]


def test_a_flush_that_asks_for_something_no_rule_names_asks_for_something() -> None:
    for values in ({}, {"vf_cache_invalidation_enable": 1}, {}):
        assert [remark.rpartition(": ")[2] for remark in remarks("render", **values)] == ["nothing is asked for"] * (not values)


def test_a_rule_is_told_with_its_place_and_only_where_it_holds() -> None:
    assert remarks("render", tlb_invalidate=1, **POST) == [
        "PIPE_CONTROL at 0x10000 (batch 0x10000, gen 11): tlb_invalidate needs command_streamer_stall_enable"
    ]
    bench = Bench("icl")
    bench.ring(bench.pack("PIPE_CONTROL", tlb_invalidate=1, **POST))  # and in a ring
    assert [remark.rpartition(": ")[2] for remark in bench.gpu.remarks] == ["tlb_invalidate needs command_streamer_stall_enable"]
    bench = Bench("skl")
    bench.run(bench.pack("PIPE_CONTROL", tlb_invalidate=1))
    assert not bench.gpu.remarks


@pytest.mark.parametrize("values, told", [
    ((0, 0, 0, 0, 0), False), ((1, 0, 0, 0, 0), True), ((0, 2, 0, 0, 0), True), ((1, 0, 1, 0, 0), True), ((0, 1, 0, 1, 0), True),
    ((1, 0, 1, 1, 0), False), ((1, 1, 1, 1, 0), False), ((1, 0, 1, 1, 1), True), ((0, 0, 1, 1, 1), False),
])  # fmt: skip
def test_a_row_applies_when_one_of_its_fields_is_set_and_needs_all_of_others(values: tuple[int, ...], told: bool) -> None:
    """Two fields of either sort, and one that must be clear then."""
    record = namedtuple("record", "a b needed also clear")(*values)  # type: ignore[call-arg]
    rule = rules._rule({"when": ["a", "b"], "needs": ["needed", "also"], "forbids": ["clear"], "says": "no"})
    assert list(rules._broken((rule,), cast(Any, record), "render", "", False)) == ["no"] * told


def test_answers_are_kept_for_commands_that_differ_in_other_fields_only(monkeypatch: pytest.MonkeyPatch) -> None:
    rules._kept_answers.cache_clear()
    page, asked, broken = layout("PIPE_CONTROL", 11.0), list[int](), rules._broken
    monkeypatch.setattr(rules, "_broken", lambda *given: (asked.append(len(asked)), broken(*given))[1])
    for address in range(0, 0x400, 0x40):
        for flush in ("tlb_invalidate", "psd_sync_enable"):
            rules.broken("PIPE_CONTROL", page.raw(page.pack(address=address, **{flush: 1})), "icl", "render", "", False)
    assert len(asked) == 2


def test_no_more_answers_are_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each kind of command; answers stay the same when others are forgotten."""
    monkeypatch.setattr(rules, "MOST_KEPT", 3)
    rules._kept_answers.cache_clear()
    page, sizes, answers = layout("PIPE_CONTROL", 11.0), list[int](), list[tuple[str, ...]]()
    fields = ("psd_sync_enable", "store_data_index", "tlb_invalidate", "generic_media_state_clear", "notify_enable")
    for name in fields * 2:
        record = page.raw(page.pack(**{name: 1}))
        answers.append(rules.broken("PIPE_CONTROL", record, "icl", "render", "", False))
        sizes.append(len(rules._kept_answers("PIPE_CONTROL", "icl", type(record))[0]))
    assert max(sizes) == 3 and answers[:5] == answers[5:] and answers[0] != answers[1]


def test_the_rules_name_fields_that_exist() -> None:
    import tomllib
    from importlib import resources

    fields = {field.name for field in layout("PIPE_CONTROL", 11).fields}
    for row in tomllib.loads((resources.files("softgen") / "spec/streamer/rules.toml").read_text())["icl"]["PIPE_CONTROL"]:
        assert {name for part in ("when", "needs", "forbids") for name in row.get(part, ())} <= fields
