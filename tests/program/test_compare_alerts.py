"""scripts/compare-alerts refuses alerts of frames that were not the device's.

It runs with a stand-in for sluice, which alerts about each capture alike and ends with the lines that its device's file has.
"""

import pathlib
import subprocess

import pytest
from frames import udp4, write_pcap

COMPARE = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "compare-alerts"
FRAMES = 10
STAND_IN = """#!/bin/sh
device=$(sed -n 's/^device = "\\([a-z0-9:]*\\)"$/\\1/p' "$2")
eve=$(sed -n 's/^eve = "\\(.*\\)"$/\\1/p' "$2")
echo '{{"event_type": "alert", "alert": {{"gid": 1, "signature_id": 7}}}}' > "$eve"
cat {folder}/"$device"
"""
CPU = f"received     {FRAMES} frames\ndevice       cpu (cores) up: 1 batches, {FRAMES} frames\n"
GPU = (f"received     {FRAMES} frames\n  inspect_by_device                      {{searched}}  frames\n"
       "device       cuda:0 (a GPU) up: 1 batches, {handed} frames\n")


@pytest.mark.parametrize(("gpu", "status", "said"), [
    pytest.param(GPU.format(searched=FRAMES, handed=FRAMES), 0, "1 events of 1 rules: alike on cpu, cuda:0", id="searched"),
    pytest.param(GPU.format(searched=9, handed=9), 0, "alike", id="nine-in-ten"),
    pytest.param(GPU.format(searched=FRAMES, handed=8), 1, "cuda:0: of 10 frames only 8 were on it", id="not-handed"),
    pytest.param(GPU.format(searched=8, handed=FRAMES), 1, "cuda:0: of 10 frames it has searched only 8", id="by-cores"),
    pytest.param(CPU.replace("cpu", "cuda:0"), 1, "cuda:0: of 10 frames it has searched only 0", id="none-searched"),
])
def test_a_gpu_must_have_searched(tmp_path, gpu, status, said):
    (tmp_path / "cpu").write_text(CPU, encoding="ascii")
    (tmp_path / "cuda:0").write_text(gpu, encoding="ascii")
    sluice = tmp_path / "sluice"
    sluice.write_text(STAND_IN.format(folder=tmp_path), encoding="ascii")
    sluice.chmod(0o755)
    capture = tmp_path / "some.pcap"
    write_pcap(capture, [udp4(b"text", 9)] * FRAMES)
    done = subprocess.run([COMPARE, "--rules", tmp_path / "rules", "--sluice", sluice, capture], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    assert done.returncode == status and said in done.stdout, done.stdout
