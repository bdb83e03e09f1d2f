"""scripts/run-tests says what failed for good and what only once, and hides neither.

It runs on a build folder and a file of tests of its own.
"""

import os
import pathlib
import re
import subprocess

import pytest

RUN_TESTS = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "run-tests"

PASSES, FAILS = "true", "false"
ONCE = "test -e {mark} || {{ touch {mark}; exit 1; }}"


@pytest.mark.parametrize(("unit", "net", "status", "words"), [
    pytest.param(PASSES, PASSES, 0, ["0 failed, 0 flaky"], id="passed"),
    pytest.param(FAILS, PASSES, 1, ["FAILED one$", "1 failed, 0 flaky"], id="unit-failed"),
    pytest.param(PASSES, FAILS, 1, [r"FAILED .*test_net test_it", "1 failed, 0 flaky"], id="net-failed"),
    pytest.param(ONCE, PASSES, 1, ["FLAKY one ", "0 failed, 1 flaky"], id="unit-flaky"),
    pytest.param(PASSES, ONCE, 1, [r"FLAKY .*test_net test_it", "0 failed, 1 flaky"], id="net-flaky"),
    pytest.param(ONCE, FAILS, 1, ["FLAKY one ", r"FAILED .*test_net test_it", "1 failed, 1 flaky"], id="both"),
])
def test_what_fails_is_said(tmp_path, unit, net, status, words):
    build = tmp_path / "build"
    build.mkdir()
    for name, line in (("unit", unit), ("net", net), ("steady", PASSES)):
        (tmp_path / name).write_text(line.format(mark=tmp_path / f"{name}.mark") + "\n", encoding="ascii")
    (build / "CTestTestfile.cmake").write_text(
        f"add_test(one sh {tmp_path}/unit)\nadd_test(two sh {tmp_path}/steady)\n", encoding="ascii")
    (tmp_path / "test_net.py").write_text(
        "import subprocess\n"
        f"def test_it():\n    assert subprocess.run(['sh', '{tmp_path}/net']).returncode == 0\n"
        "def test_other():\n    pass\n", encoding="ascii")
    done = subprocess.run([RUN_TESTS, build, tmp_path / "test_net.py"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60, check=False, env={**os.environ, "FLAKY": "fail"})
    said = [line for line in done.stdout.splitlines() if line.startswith("run-tests: ")]
    assert done.returncode == status, done.stdout
    for word in words:
        assert any(re.search(word, line) for line in said), done.stdout
    assert not any("test_other" in line or "two" in line for line in said), done.stdout


GOOGLE = "echo '[ RUN      ] Room.First'; echo '[       OK ] Room.First (0 ms)'; "
BROKEN = "echo '[ RUN      ] Room.Second'; echo '[  FAILED  ] Room.Second, where x = 1 (0 ms)'; exit 1"
CRASHED = "echo '[ RUN      ] Room.Third'; kill -SEGV $$"


@pytest.mark.parametrize(("first", "second", "said"), [
    (BROKEN, BROKEN, {"FAILED room/file Room.Second"}),
    (BROKEN, "true", {"FLAKY room/file Room.Second (failed, then passed)"}),
    (CRASHED, "true", {"FLAKY room/file Room.Third (failed, then passed)"}),
    (CRASHED, BROKEN, {"FAILED room/file Room.Second", "FLAKY room/file Room.Third (failed, then passed)"}),
])
def test_of_a_file_of_unit_tests_the_test_is_named(tmp_path, first, second, said):
    build = tmp_path / "build"
    build.mkdir()
    (tmp_path / "unit").write_text(f"{GOOGLE}\nif test ! -e {tmp_path}/mark; then touch {tmp_path}/mark; {first}; else {second}; fi\n",
                                   encoding="ascii")
    (build / "CTestTestfile.cmake").write_text(f"add_test(room/file sh {tmp_path}/unit)\n", encoding="ascii")
    (tmp_path / "test_net.py").write_text("def test_it():\n    pass\n", encoding="ascii")
    done = subprocess.run([RUN_TESTS, build, tmp_path / "test_net.py"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60, check=False)
    lines = {line.removeprefix("run-tests: ") for line in done.stdout.splitlines() if re.match("run-tests: (FAILED|FLAKY)", line)}
    assert lines == said, done.stdout


def test_a_flaky_test_fails_the_run_only_when_asked(tmp_path):
    build = tmp_path / "build"
    build.mkdir()
    (tmp_path / "unit").write_text(ONCE.format(mark=tmp_path / "mark") + "\n", encoding="ascii")
    (build / "CTestTestfile.cmake").write_text(f"add_test(one sh {tmp_path}/unit)\n", encoding="ascii")
    (tmp_path / "test_net.py").write_text("def test_it():\n    pass\n", encoding="ascii")
    environment = {name: value for name, value in os.environ.items() if name != "FLAKY"}
    done = subprocess.run([RUN_TESTS, build, tmp_path / "test_net.py"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60, check=False, env=environment)
    assert done.returncode == 0, done.stdout
    assert "run-tests: 0 failed, 1 flaky" in done.stdout
