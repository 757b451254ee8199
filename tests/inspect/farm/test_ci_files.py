"""What CI systems read: the action's steps and the template's lines run here, with stand-ins for what they install."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT
from tests.driver.running import needs_shim
from tests.inspect.farm.farming import lines, write_list

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
TEMPLATE: dict[str, Any] = yaml.safe_load((ROOT / "templates" / "softgen.gitlab-ci.yml").read_text("utf-8"))[".softgen"]
EXAMPLE: dict[str, Any] = yaml.safe_load((ROOT / "examples" / "github-actions.yml").read_text("utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]

# `python -m venv FOLDER` makes a folder whose pip makes a wheel of nothing, and whose softgen is the one that is tested.
PYTHON = f"""#!/bin/sh
echo "python $*" >> "$LOG"
mkdir -p "$3/bin"
cat > "$3/bin/pip" <<'PIP'
#!/bin/sh
echo "pip $*" >> "$LOG"
for word; do case "$before" in -w) mkdir -p "$word"; : > "$word/softgen-1-py3-none-any.whl";; esac; before=$word; done
PIP
printf '#!/bin/sh\\nPYTHONPATH={ROOT} exec {sys.executable} -m softgen "$@"\\n' > "$3/bin/softgen"
chmod +x "$3/bin/pip" "$3/bin/softgen"
"""


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine of a CI system."""
    (tools := tmp_path / "tools").mkdir()
    for name, text in (("python", PYTHON), ("python3", PYTHON), ("sudo", '#!/bin/sh\necho "sudo $*" >> "$LOG"\n'),
                       ("apt-get", '#!/bin/sh\necho "apt-get $*" >> "$LOG"\n')):  # fmt: skip
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    (tmp_path / "temp").mkdir()
    return {"PATH": f"{tools}:/usr/bin:/bin", "HOME": str(tmp_path), "LOG": str(tmp_path / "log"), "RUNNER_TEMP": str(tmp_path / "temp")}


def run_action(folder: Path, environment: dict[str, str], **given: str) -> tuple[int, str]:
    """Run the action's own steps in a project's folder: exit code of the last, and what they printed."""
    known = {name: str(facts.get("default", "")) for name, facts in ACTION["inputs"].items()} | {"shard": ""} | given
    printed = ""
    for step in STEPS:
        if "run" not in step:
            continue
        told = {name: value.replace("${{ github.action_path }}", str(ROOT)) for name, value in step.get("env", {}).items()}
        told = {name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: known[found[1]], value) for name, value in told.items()}
        assert step["shell"] == "bash" and not any("${{" in value for value in told.values())
        ran = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], cwd=folder, env=environment | told,
                             capture_output=True, text=True, check=False)  # fmt: skip
        printed += ran.stdout + ran.stderr
        if ran.returncode:
            return ran.returncode, printed
    return 0, printed


def test_steps_name_inputs_that_exist_and_scripts_contain_none() -> None:
    """A value that a stranger chose, such as a branch's name, must not become code."""
    assert ACTION["runs"]["using"] == "composite"
    for step in STEPS:
        assert "${{" not in step.get("run", "") and ("run" in step) == ("shell" in step)
    named = set(re.findall(r"inputs\.(\w+)", json.dumps(ACTION)))
    assert named == set(ACTION["inputs"]) and all(facts["description"] for facts in ACTION["inputs"].values())


@needs_shim
def test_the_action_runs_a_script_on_each_gpu(tmp_path: Path, runner: dict[str, str]) -> None:
    (project := tmp_path / "project").mkdir()
    code, printed = run_action(project, runner, gpu="kbl,icl", run="echo one\ntest -e /dev/dri/renderD128 && echo found it")
    assert code == 0 and printed.count("one\nfound it\n") == 2, printed
    assert {path.name for path in (project / "softgen-results").iterdir()} == {"report-kbl.json", "report-icl.json"}
    log = (tmp_path / "log").read_text()
    assert "intel-opencl-icd" in log and "sudo apt-get update" in log
    assert f"pip wheel --quiet --no-deps -w {tmp_path}/temp/wheel {ROOT}" in log
    assert f"install --quiet -c {ROOT}/constraints.txt {tmp_path}/temp/wheel/softgen-1-py3-none-any.whl" in log


@needs_shim
def test_the_action_fails_with_the_script(tmp_path: Path, runner: dict[str, str]) -> None:
    (project := tmp_path / "project").mkdir()
    code, printed = run_action(project, runner, run="false\necho not reached", packages="")
    assert code == 1 and "not reached" not in printed and "apt-get" not in (tmp_path / "log").read_text()
    code, printed = run_action(project, runner)
    assert code == 2 and "::error::softgen: the input 'run' or 'tests' says what to do" in printed


@needs_shim
def test_the_action_runs_a_list(tmp_path: Path, runner: dict[str, str]) -> None:
    (project := tmp_path / "project").mkdir()
    write_list(project / "tests.txt", ["true", "false", "sh -c 'exit 77'", "true 4"])
    code, _ = run_action(project, runner, tests="tests.txt", shard="1/2")
    assert code == 0 and {line["name"] for line in lines(project / "softgen-results")} == {"true", "sh -c 'exit 77'"}
    code, _ = run_action(project, runner, tests="tests.txt", options="--engine reference --workers 1")
    assert code == 1 and (project / "softgen-results" / "junit.xml").exists() and len(lines(project / "softgen-results")) == 4


def test_the_action_offers_its_folder_of_results() -> None:
    upload = STEPS[-1]
    assert upload["uses"].startswith("actions/upload-artifact@") and upload["if"] == "always()"
    assert upload["with"]["path"] == ACTION["outputs"]["results"]["value"] == "${{ inputs.results }}"


def test_the_example_uses_the_action_as_it_is() -> None:
    uses = [step for job in EXAMPLE["jobs"].values() for step in job["steps"] if "softgen" in step["uses"]]
    assert len(uses) == 2 and all(set(step["with"]) <= set(ACTION["inputs"]) for step in uses)


def run_template(folder: Path, environment: dict[str, str], **given: str) -> subprocess.CompletedProcess[str]:
    """Run a job that extends the template, as GitLab does: variables, then all lines in one shell."""
    told = environment | {"CI_PROJECT_DIR": str(folder), "CI_SERVER_URL": "https://gitlab.example"}
    for name, value in (TEMPLATE["variables"] | given).items():
        told[name] = re.sub(r"\$(\w+)", lambda found: told.get(found[1], ""), str(value))
    script = "\n".join([*TEMPLATE["before_script"], *TEMPLATE["script"]])
    return subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=folder, env=told, capture_output=True, text=True, check=False)


@pytest.mark.witness
@needs_shim
def test_the_template_divides_a_list(tmp_path: Path, runner: dict[str, str]) -> None:
    (project := tmp_path / "project").mkdir()
    write_list(project / "tests.txt", ["true", "false", "true 3"])
    environment = runner | {"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "2"}
    ran = run_template(project, environment, SOFTGEN_TESTS="tests.txt")
    assert ran.returncode == 0, ran.stderr
    assert {line["name"] for line in lines(project / "softgen-results")} == {"true", "true 3"}
    assert (project / TEMPLATE["artifacts"]["reports"]["junit"]).exists()
    assert "git+https://gitlab.example/softgen/softgen.git@v1" in (tmp_path / "log").read_text()
    assert run_template(project, runner | {"CI_NODE_TOTAL": "1"}, SOFTGEN_TESTS="tests.txt").returncode == 1


@needs_shim
def test_the_template_runs_a_script(tmp_path: Path, runner: dict[str, str]) -> None:
    (project := tmp_path / "project").mkdir()
    ran = run_template(project, runner, SOFTGEN_RUN="echo said; exit 3", SOFTGEN_GPU="kbl,icl")
    assert ran.returncode == 1 and ran.stdout.count("said\n") == 2
    assert run_template(project, runner, SOFTGEN_RUN="true").returncode == 0
    ran = run_template(project, runner)
    assert ran.returncode == 2 and "SOFTGEN_TESTS or SOFTGEN_RUN says what to do" in ran.stdout


def test_the_template_keeps_compiled_kernels() -> None:
    assert TEMPLATE["cache"]["paths"] == [".cache/softgen"] and TEMPLATE["variables"]["XDG_CACHE_HOME"] == "$CI_PROJECT_DIR/.cache"
    assert TEMPLATE["artifacts"]["when"] == "always" and os.path.exists(ROOT / "templates" / "softgen.gitlab-ci.yml")
