"""piglit's OpenCL program tests: a fixed hundredth as an everyday test, all of them as a witness."""

import pytest

from tests.driver import piglit
from tests.driver.running import needs_driver, needs_shim

PARTS = 12  # of the witness: runs that several workers can share
MOST = 0.05  # share of the tests the runtime supports that may fail, whatever the reason

pytestmark = needs_shim


def needs_piglit() -> None:
    needs_driver("kbl", "OpenCL")
    if not piglit.TESTER.exists():
        pytest.skip("cl-program-tester is absent (package piglit)")


def check(names: list[str]) -> piglit.Outcome:
    """As expected: nothing fails but what is listed, and all that is listed fails."""
    outcome, said = piglit.run(names)
    expected = {item for item in piglit.known() if item[0] in names}
    assert outcome.failed == expected, said
    assert {file for file, _ in outcome.results} == set(names)
    return outcome


def test_a_fixed_sample_of_piglit() -> None:
    needs_piglit()
    assert len(piglit.sample()) * piglit.EACH >= len(piglit.files()) - piglit.EACH // 2
    assert check(piglit.sample()).passed > 20


@pytest.mark.witness
@pytest.mark.parametrize("part", range(PARTS))
def test_all_of_piglit(part: int) -> None:
    needs_piglit()
    check(piglit.files()[part::PARTS])


def test_few_tests_of_piglit_are_listed_as_failures() -> None:
    needs_piglit()
    listed, every = piglit.known(), set(piglit.files())
    assert {file for file, _ in listed} <= every and all(listed.values())
    assert len(listed) < MOST * len(every), "there are several tests in most files"


def test_what_the_tester_says_is_read() -> None:
    text = """FILE a.cl
PIGLIT: {"result": "warn" }
> Running kernel test: one
PIGLIT: {"subtest": {"one" : "pass"}}
PIGLIT: {"subtest": {"two \\"2\\"" : "fail"}}
PIGLIT: {"result": "fail" }
FILE b.cl
Could not build program
PIGLIT: {"result": "fail" }
FILE c.cl
FILE d.cl
PIGLIT: {"result": "skip" }
"""
    outcome = piglit.read(text)
    assert outcome.results == {("a.cl", "one"): "pass", ("a.cl", 'two "2"'): "fail", ("b.cl", "*"): "fail", ("c.cl", "*"): "crash",
                               ("d.cl", "*"): "skip"}  # fmt: skip
    assert outcome.failed == {("a.cl", 'two "2"'), ("b.cl", "*"), ("c.cl", "*")} and outcome.passed == 1
