"""scripts/steps, by which .ci/run and scripts/nightly say what became of each step; and which steps the night has."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def shell(text):
    return subprocess.run(["bash", "-uc", f"who=night; . scripts/steps; {text}"], cwd=ROOT, capture_output=True, text=True, timeout=60,
                          check=False)


def test_each_step_has_a_line_and_one_that_failed_is_the_status():
    ran = shell("step one true; step two sh -c 'exit 3'; echo status $?; step three true; summary")
    assert ran.returncode == 1 and "status 3" in ran.stdout
    assert re.findall(r"^night: (\w+ \w+) \(\d+ s\)$", ran.stdout, re.M) == ["one passed", "two FAILED", "three passed"]
    assert shell("step one true; summary").returncode == 0


def test_an_unknown_step_of_the_night_is_said_before_anything_runs():
    ran = subprocess.run([ROOT / "scripts/nightly", "lint", "moon"], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "nightly: there is no step 'moon'; there are lint, sanitize, races, fuzz, test-deb, benches\n"
