"""Contexts of compiled code: fields that units declare."""

from __future__ import annotations

import pytest

from softgen.lanes.record import RecordLayout
from softgen.lanes.types import LaneType, i32, i64, u8, u16, u32, u64
from softgen.shared_functions.context import HEAD, ContextField, Scope, compose


@pytest.mark.parametrize("type", [u8, u16, u32, u64, i32, i64], ids=str)
def test_a_field_has_the_size_and_sign_of_its_type(type: LaneType) -> None:
    made = compose([ContextField("own", Scope.WORKER, type)])
    assert RecordLayout.of(made).field("own").type is type and RecordLayout.of(made).offset("own") == HEAD.size
    low, high = (-1 << type.bits - 1, (1 << type.bits - 1) - 1) if type.is_signed else (0, (1 << type.bits) - 1)
    assert [made(own=value).own for value in (low, high, high + 1)] == [low, high, low]


def test_a_field_is_of_64_bits_by_default() -> None:
    assert ContextField("own", Scope.WORKER).type is u64


@pytest.mark.parametrize("other", [ContextField("own", Scope.GROUP), ContextField("own", Scope.WORKER, u32)])
def test_units_that_share_a_field_agree_about_it(other: ContextField) -> None:
    with pytest.raises(TypeError, match="two units have a context field own"):
        compose([ContextField("own", Scope.WORKER), other])
