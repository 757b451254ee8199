"""Whole OpenCL programs of the distribution, unchanged: hashcat and clpeak."""

from pathlib import Path

import pytest

from tests.driver.running import Softgen, needs_driver, needs_shim
from tests.driver.test_drivers import needs_program

HOURS = 3600
MD5_OF_123 = "202cb962ac59075b964b07152d234b70"

pytestmark = [needs_shim, pytest.mark.witness]


def test_hashcat_tests_itself_and_finds_a_password(tmp_path: Path) -> None:
    needs_program("hashcat", "hashcat")
    needs_driver("kbl", "OpenCL")
    hashes, found = tmp_path / "hashes", tmp_path / "found"
    hashes.write_text(MD5_OF_123 + "\n", "ascii")
    options = ["-m", "0", "-a", "3", "-D", "2", "--potfile-disable", "--outfile", str(found), str(hashes), "?d?d?d"]
    run = Softgen("--", "hashcat", *options, HOME=str(tmp_path))
    run.finish(seconds=HOURS / 2)
    assert "Finished self-test" in run.out and "self-test failed" not in (run.out + run.err).lower(), run.out + run.err
    assert found.read_text("ascii") == f"{MD5_OF_123}:123\n" and run.process.returncode == 0 and run.all_gone()


def test_clpeak_comes_to_its_end() -> None:
    needs_program("clpeak", "clpeak")
    needs_driver("kbl", "OpenCL")
    run = Softgen("--", "clpeak")
    run.finish(seconds=4 * HOURS)
    assert run.process.returncode == 0 and "Tests skipped" not in run.out and run.err == "", run.out + run.err
    assert run.all_gone()
