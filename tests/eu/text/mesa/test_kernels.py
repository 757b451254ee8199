"""Compiled kernels through Mesa's dialect and back, byte for byte, with hardly an annotation."""

from __future__ import annotations

import pytest

from softgen.eu.encoding.program import assemble, decodable_bytes, instructions
from softgen.eu.text.mesa.format import program as text_of
from softgen.eu.text.mesa.parse import parse
from tests.conftest import SHARED, needs_shared, witness

MOST = 0.01  # of the instructions may need an annotation


@needs_shared("kernels")
@pytest.mark.parametrize("step", [12, witness(1)])  # one kernel in so many
@pytest.mark.parametrize(("gpu", "gen"), [("bdw", 8.0), ("kbl", 9.0), ("icllp", 11.0)])
def test_kernels_come_back_from_their_text(gpu: str, gen: float, step: int) -> None:
    annotated = total = 0
    for path in sorted((SHARED / "kernels").glob(f"*/{gpu}/*.dat"))[::step]:
        if path.name.count(".") > 1:  # the same kernel for another width, or from another container
            continue
        data = path.read_bytes()
        data = data[: decodable_bytes(data, gen)]
        found = list(instructions(data, gen))
        said = text_of(found)
        back = parse(said, gen, path.name)
        assert back == [inst for _, _, inst in found]
        assert assemble(back) == data, path
        annotated += said.count("/* bits:")
        total += len(found)
    assert total > 5000 / step
    assert annotated < MOST * total
