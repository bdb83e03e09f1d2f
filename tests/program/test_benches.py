"""Exit statuses of `sluice bench` and of the bundle's run-bench: 0 reached, 1 missed, 2 not started so."""

import csv
import os
import re
import shutil
import subprocess

import pytest
from gateway import ROOT, SLUICE

RUN_BENCH = ROOT / "packaging" / "bundle" / "run-bench"
RUN_ROWS = ROOT / "packaging" / "bundle" / "run-rows"


def bench(*words):
    return subprocess.run([SLUICE, "bench", *words], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("words, message", [
    (["route", "--mix", "huge"], "bench route: --mix huge: "),
    (["order", "--mix", "huge"], "sluice: bench order: there is no option '--mix': 'sluice bench order --help' lists "),
    (["order", "--csv", "/nowhere/rows.csv"], "bench order: --csv /nowhere/rows.csv: cannot be written\n"),
    (["route", "--table", "/tmp"], "bench route: --table /tmp: is a folder: name a regular file\n"),
    (["echo", "--lanes", "65"], "bench echo: --lanes 65: each has a core of its own, and this machine has "),
    (["idle", "--device", "cuda:99"], "bench idle: --device cuda:99: no "),
    (["churn", "--updates", "/dev/zero"], "bench churn: --updates /dev/zero: is a device: name a regular file\n"),
    (["route", "--table", "/dev/null", "--seconds", "-1"], "bench route: --seconds -1: allowed is above 0 and at most 1000000\n"),
    (["inspect", "--only", "SCTP"], "bench inspect: --only SCTP: no traffic is named so: a part of 'heavy-tail UDP text', "),
    (["inspect", "--only", "heavy-tail UDP text,SCTP"], "bench inspect: --only SCTP: no traffic is named so: "),
    (["inspect", "--mix", "64", "--only", "HTTP"], "bench inspect: --only HTTP: no traffic is named so: "),
    (["ipsec", "--only", "both"], "bench ipsec: --only both: there are out and in\n"),
    (["ipsec", "--algorithms", "aes128-md5"], "bench ipsec: --algorithms aes128-md5: there is no algorithm 'aes128-md5': there are mixed, "),
    (["ipsec", "--sizes", "1519"], "bench ipsec: --sizes 1519: frames of up to 1518 bytes are possible\n"),
    (["ipsec", "--mix", "64"], "sluice: bench ipsec: there is no option '--mix': "),
    (["route", "--only", "HTTP"], "sluice: bench route: there is no option '--only': "),
    (["route", "--table", "/dev/null"], "bench route: --table /dev/null: is a device: name a regular file\n"),
])
def test_bad_usage_is_one_line_and_status_two(words, message):
    ran = bench(*words)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(message) and ran.stderr.count("\n") == 1


def test_a_program_whose_benches_are_missing_says_where_they_come_from(tmp_path):
    alone = shutil.copy(SLUICE, tmp_path / "sluice")
    for words in (["bench"], ["bench", "--help"], ["bench", "idle", "--seconds", "1"]):
        ran = subprocess.run([alone, *words], capture_output=True, text=True, timeout=60, check=False)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert ran.stderr.startswith(f"sluice: bench: {tmp_path}/sluice-bench: No such file or directory: the benches are a program ")
        assert "'make install'" in ran.stderr and ran.stderr.count("\n") == 1


def test_every_word_reaches_the_benches():
    helped = bench("idle", "--help")
    assert helped.returncode == 0 and "Usage: sluice bench idle [OPTIONS]" in helped.stdout
    assert bench("--help").stdout.startswith("Measure this machine and the gateway on it\nUsage: sluice bench ")
    assert bench().stderr.startswith("sluice: which bench command? There are link, echo, ")
    assert bench("run", "x.toml").stderr.startswith("sluice: there is no command 'bench run'; there are link, echo, ")


def test_a_pipe_has_each_line_when_it_is_said():
    words = ["idle", "--device", "cpu", "--lanes", "1", "--frames", "512", "--no-goals"]
    with subprocess.Popen([SLUICE, "bench", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ran:
        try:
            assert ran.stdout.readline().startswith("memory: ")
            assert ran.poll() is None
            # The noise of the cores alone is measured for two seconds, and a table of 800,000 routes is made.
            assert ran.stderr.readline().startswith("bench: ")
            assert ran.poll() is None
        finally:
            ran.terminate()


def test_media_overloaded_with_admission_of_streams_off_and_on(tmp_path):
    rows = tmp_path / "rows.csv"
    ran = bench("media", "--device", "cpu", "--lanes", "1", "--rtp-streams", "200", "--mix", "1370", "--deadline-ms", "5",
                "--seconds", "0.2", "--overload", "1.5", "--no-goals", "--csv", rows)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    # Of 1.5 times what is carried, 0.6 of it: two in five.
    assert "  of 200 streams of " in ran.stdout and "Mbit/s 80 are accepted, 120 refused: " in ran.stdout
    said = {state: float(share) for state, share in re.findall(
        r"overload admission (off|on): of the frames of \d+ streams ([\d.]+) % late or not let in", ran.stdout)}
    assert said["off"] > 5 and said["on"] < said["off"]
    with rows.open(encoding="utf-8") as file:
        labels = [row["label"] for row in csv.DictReader(file)]
    assert [label for label in labels if "overload" in label] == [
        f"cpu AES_CM_128_HMAC_SHA1_80 protect 1370 5 ms overload admission {state}" for state in ("off", "on")]


def test_ipsec_both_ways_beside_rte_ipsec(tmp_path):
    rows = tmp_path / "rows.csv"
    ran = bench("ipsec", "--device", "cpu", "--lanes", "1", "--seconds", "0.1", "--frames", "4096", "--batch", "512",
                "--algorithms", "mixed-esp,ah-sha1", "--sizes", "imix", "--sas", "20", "--no-goals", "--csv", rows)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    verified = [int(count) for count in re.findall(r"of one opinion on (\d+) frames", ran.stdout)]
    assert len(verified) == 2 and min(verified) >= 40000
    assert "rte_ipsec: not measured: rte_ipsec has no AH" in ran.stdout
    with rows.open(encoding="utf-8") as file:
        measured = list(csv.DictReader(file))
    assert {row["rounds"] for row in measured} == {"5"}
    bytes_in_clear = [1000 * float(row["gbytes"]) / float(row["mpps"]) for row in measured]
    assert max(bytes_in_clear) < 1.1 * min(bytes_in_clear), "what protects a packet is not counted"
    cores = len(os.sched_getaffinity(0))
    assert [row["label"] for row in measured] == [*(f"cpu {way} mixed-esp imix 20 SAs" for way in ("out", "in")),
                      *(f"rte_ipsec on {cores} cores {way} mixed-esp imix 20 SAs" for way in ("out", "in")),
                      *(f"cpu {way} ah-sha1 imix 20 SAs" for way in ("out", "in"))]


@pytest.fixture
def run_bench(tmp_path):
    """run-bench over programs that end with the statuses given by name; answers with what it ended with and said."""
    def run(statuses, *names, options=""):
        (tmp_path / "sluice").write_text(f'#!/bin/sh\n[ "$3" != --help ] || exec {SLUICE} "$@"\necho "sluice $*"\ncase $2 in\n' + "".join(
            f"  {name}) exit {status} ;;\n" for name, status in statuses.items()) + "esac\n", encoding="ascii")
        (tmp_path / "sluice_room_bench").write_text(f"#!/bin/sh\nexit {statuses.get('room', 0)}\n", encoding="ascii")
        for program in tmp_path.iterdir():
            program.chmod(0o755)
        return subprocess.run([RUN_BENCH, *names], capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, "SLUICE_BIN": str(tmp_path), "RUN_BENCH_OPTIONS": options})
    return run


def test_run_bench_goes_on_and_ends_with_the_worst_status(run_bench):
    for statuses, worst in (({}, 0), ({"route": 1}, 1), ({"route": 2, "order": 1}, 2), ({"room": 1}, 1)):
        ran = run_bench(statuses)
        assert ran.returncode == worst, ran.stdout
        for name in ("link", "echo", "touch", "route", "idle", "churn", "order", "room"):
            state = f"FAILED  {name} (exit status {statuses[name]})" if name in statuses else f"passed  {name}"
            assert f"\n{state}\n" in ran.stdout


def test_run_bench_hands_options_on_and_runs_what_it_is_given(run_bench):
    ran = run_bench({}, "route", "order", options="--no-goals --seconds 1 --device=cpu --mix imix")
    assert ran.returncode == 0
    assert [line for line in ran.stdout.splitlines() if line.startswith("sluice")] == [
        "sluice bench route --no-goals --seconds 1 --device=cpu --mix imix", "sluice bench order --no-goals --device=cpu"]
    assert ran.stderr == "run-bench: order has no --seconds: left out\nrun-bench: order has no --mix: left out\n"


def run_rows(tmp_path, *words, **environment):
    return subprocess.run([RUN_ROWS, *words], capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, "SLUICE_BIN": str(tmp_path), **environment})


def parts_of(said):
    return [line.split()[0] for line in said.splitlines() if line.startswith("  ")]


def test_each_part_of_run_rows_is_a_bench_that_only_wants_a_gpu(tmp_path):
    (tmp_path / "sluice").symlink_to(SLUICE)
    listed = run_rows(tmp_path)
    parts = parts_of(listed.stdout)
    assert listed.returncode == 2 and len(parts) > 20
    ran = run_rows(tmp_path, tmp_path / "out", *parts, DEVICE="cuda:99")
    assert ran.returncode == 2
    for part in parts:
        said = (tmp_path / "out" / f"{part}.txt").read_text(encoding="utf-8")
        assert ": --device cuda:99: no " in said, part
        assert f"FAILED (exit status 2)  {part}, " in ran.stdout


def test_run_rows_runs_all_parts_and_ends_with_the_worst_status(tmp_path):
    (tmp_path / "sluice").write_text('#!/bin/sh\necho "sluice $*"\ncase $2 in acl) exit 1 ;; fused) exec sleep 60 ;; esac\n',
                                     encoding="ascii")
    (tmp_path / "sluice").chmod(0o755)
    ran = run_rows(tmp_path, tmp_path / "out", "acl", "fused", "chain-tcp", RULES="/of others.rules", ACL="/acl", LONGEST="1")
    assert ran.returncode == 124
    assert "sluice bench inspect --device cuda:0 --seconds 0.3 --rules /of others.rules --acl /acl --only heavy-tail TCP text --csv" in ran.stdout
    assert re.search(r"FAILED \(exit status 1\)  acl, \d+ s\nFAILED \(exit status 124\)  fused, \d+ s\npassed  chain-tcp, \d+ s\n$", ran.stdout)
    (tmp_path / "near.rules").touch()
    relative = os.path.relpath(tmp_path / "near.rules")
    ran = run_rows(tmp_path, tmp_path / "out", "chain-tcp", RULES=relative)
    assert f"--rules {tmp_path / 'near.rules'} --only" in ran.stdout
    ran = run_rows(tmp_path, tmp_path / "out", "chain-tcp", RULES="/no/folder/of.rules")
    assert "--rules /no/folder/of.rules --only" in ran.stdout, "the bench says that it is not there"
    wrong = run_rows(tmp_path, tmp_path / "out", "acl", "chain-sctp")
    assert wrong.returncode == 2 and "there is no part 'chain-sctp'" in wrong.stderr and wrong.stdout == ""
