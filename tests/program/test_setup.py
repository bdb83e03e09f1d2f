"""scripts/setup keeps services from starting while it installs, by /usr/sbin/policy-rc.d, and leaves no such file behind.

It runs on a /usr/sbin of its own (a mount namespace), with stand-ins for what would install something.
"""

import os
import pathlib
import signal
import subprocess
import time

import pytest
from hosts import stop, wait_until

SETUP = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "setup"

STAND_INS = {
    "dpkg-query": "exit 1",  # everything is missing
    "apt-get": 'echo "$*" >> "$WORK/words"\necho "$1: $(cat /usr/sbin/policy-rc.d | tail -n 1)" >> "$WORK/calls"\n'
               'sleep "$APT_SECONDS"\necho "$1 ended" >> "$WORK/calls"\nexit "$APT_STATUS"',
    "apt-cache": '[ "$2" = user-mode-linux ] || echo "$2 | 1.0 | an archive"',
    "id": 'echo "$USER_ID"',
    "sudo": 'AS_ROOT=yes exec "$@"',
    # As for a user who may not write /usr/sbin.
    "rm": 'case "$*" in *policy-rc.d*) [ "$USER_ID" = 0 ] || [ -n "$AS_ROOT" ] || exit 1 ;; esac\nexec /bin/rm "$@"',
}


@pytest.fixture
def setup(tmp_path):
    """Starts it as user `user`; `policy` is what /usr/sbin/policy-rc.d is there."""
    for name, text in STAND_INS.items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
        path.chmod(0o755)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "setup").write_bytes(SETUP.read_bytes())
    (tmp_path / "packaging").mkdir()
    (tmp_path / "packaging" / "test-packages.txt").write_text("bird2\nfrr\n", encoding="ascii")
    (tmp_path / "packaging" / "demo-packages.txt").write_text("iperf3\n", encoding="ascii")
    (tmp_path / "sbin").mkdir()
    processes = []

    def start(user, status=0, seconds=0):
        environment = {**os.environ, "PATH": f"{tmp_path}/bin:/usr/bin:/bin", "WORK": str(tmp_path), "USER_ID": str(user),
                       "APT_STATUS": str(status), "APT_SECONDS": str(seconds)}
        inner = f"mount --bind {tmp_path}/sbin /usr/sbin && exec bash {tmp_path}/scripts/setup test"
        processes.append(subprocess.Popen(["unshare", "--mount", "sh", "-c", inner], env=environment, text=True,
                                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        return processes[-1]

    start.policy = tmp_path / "sbin" / "policy-rc.d"
    start.calls = tmp_path / "calls"
    yield start
    for process in processes:
        stop(process)


@pytest.mark.parametrize("user", [0, 1000], ids=["root", "sudo"])
@pytest.mark.parametrize("status", [0, 100], ids=["installed", "failed"])
def test_no_policy_is_left(setup, user, status):
    process = setup(user, status)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == (2 if status else 0), output
    assert "update: exit 101" in setup.calls.read_text(), output
    assert not setup.policy.exists(), output


@pytest.mark.parametrize("user", [0, 1000], ids=["root", "sudo"])
@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_waits_for_apt_and_leaves_no_policy(setup, user, with_signal):
    process = setup(user, seconds=2)
    assert wait_until(setup.calls.exists, 10)
    assert setup.policy.exists()
    process.send_signal(with_signal)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 128 + with_signal, output
    assert "install ended" in setup.calls.read_text() and "waiting for apt-get" in output
    assert not setup.policy.exists(), output


@pytest.fixture
def nvcc(tmp_path):
    """Starts setup where nvcc is missing, with a pip that takes `seconds`."""
    pip = tmp_path / ".toolchain" / "venv" / "bin" / "pip"
    for path, text in ((pip, 'echo Collecting nvcc\nsleep "$PIP_SECONDS" & echo $! > "$WORK/pid"\n'
                             'trap "kill $!; exit 1" TERM\nwait $!\nexit 1'),
                       (tmp_path / "scripts" / "cuda-flags", ""),
                       (tmp_path / "bin" / "dpkg-query", 'for word; do echo "ii $word"; done')):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
        path.chmod(0o755)
    (tmp_path / "scripts" / "setup").write_bytes(SETUP.read_bytes())
    (tmp_path / "packaging").mkdir()
    (tmp_path / "packaging" / "build-packages.txt").write_text("git\n", encoding="ascii")
    (tmp_path / "packaging" / "program-packages.txt").write_text("make\n", encoding="ascii")
    processes = []

    def start(seconds):
        processes.append(subprocess.Popen(["bash", tmp_path / "scripts" / "setup", "build"], text=True,
                                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                          env={**os.environ, "PATH": f"{tmp_path}/bin:/usr/bin:/bin", "WORK": str(tmp_path),
                                               "PIP_SECONDS": str(seconds)}))
        return processes[-1]

    start.pid = tmp_path / "pid"
    yield start
    for process in processes:
        stop(process)


def test_it_says_how_far_pip_is(nvcc):
    output, _ = nvcc(12).communicate(timeout=40)
    assert "\nsetup: 10 s: Collecting nvcc\nsetup: nvcc could not be installed" in output


def test_an_interrupt_ends_pip(nvcc):
    process = nvcc(60)
    assert wait_until(lambda: nvcc.pid.exists() and nvcc.pid.read_text(), 10)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert wait_until(lambda: not pathlib.Path(f"/proc/{nvcc.pid.read_text().strip()}").exists(), 5)


def test_a_killed_setup_leaves_no_policy_and_a_left_one_is_taken_over(setup):
    process = setup(1000, seconds=1)
    assert wait_until(setup.calls.exists, 10)
    process.send_signal(signal.SIGKILL)
    time.sleep(0.1)
    assert setup.policy.exists(), "services would start while apt-get goes on"
    assert wait_until(lambda: not setup.policy.exists(), 10)
    setup.policy.write_text("#!/bin/sh\n# made by scripts/setup of sluice, process 99999999\nexit 101\n", encoding="ascii")
    setup(0).communicate(timeout=20)
    assert not setup.policy.exists()


def test_the_policy_of_somebody_else_stays(setup):
    setup.policy.write_text("#!/bin/sh\nexit 104\n", encoding="ascii")
    setup(1000).communicate(timeout=20)
    assert "install: exit 104" in setup.calls.read_text()
    assert setup.policy.read_text(encoding="ascii") == "#!/bin/sh\nexit 104\n"


def test_a_release_without_user_mode_linux_goes_without(setup, tmp_path):
    (tmp_path / "packaging" / "demo-packages.txt").write_text("iperf3\nuser-mode-linux\n", encoding="ascii")
    output, _ = setup(0).communicate(timeout=20)
    words = (tmp_path / "words").read_text().splitlines()
    assert words == ["update", "install -y --no-install-recommends bird2 frr iperf3"], output
    (tmp_path / "bin" / "dpkg-query").write_text('#!/bin/sh\nprintf "ii %s\\n" bird2 frr iperf3\n', encoding="ascii")
    process = setup(0)
    output, _ = process.communicate(timeout=20)
    assert (process.returncode, output) == (0, "") and (tmp_path / "words").read_text().splitlines() == words, "nor is apt asked again"
