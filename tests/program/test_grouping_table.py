"""scripts/grouping-table: a table of what `sluice_crypto_bench` says of groupings."""

import json
import subprocess

from gateway import ROOT

TABLE = ROOT / "scripts" / "grouping-table"


def bench(suite, lengths, grouping, direction, way="auto", **counters):
    return {"name": f"esp/{suite}/{lengths}/{grouping}/{way}/{direction}/min_time:0.200/manual_time", "Gbit/s": 200.4, "share": 0.71,
            "idle": 0.125, "reordered": 0, **counters}


def run(tmp_path, *benchmarks):
    (tmp_path / "groupings.json").write_text(json.dumps({"benchmarks": benchmarks}), encoding="utf-8")
    return subprocess.run([TABLE, tmp_path / "groupings.json"], capture_output=True, text=True, timeout=60, check=False)


def test_a_row_has_both_directions_in_the_order_of_groupings(tmp_path):
    ran = run(tmp_path, bench("mixed", "imix", "by_gpu", "seal"), bench("mixed", "imix", "none", "open", reordered=2),
              bench("mixed", "imix", "none", "seal", **{"Gbit/s": 99.6}), bench("mixed", "imix", "none", "seal", way="copy"))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[2:] == [
        "| ten, mixed | IMIX | none | 100 | 71 % | 12 % | 200 | 71 % | 12 % | 2 |",
        "| ten, mixed | IMIX | on the GPU | 200 | 71 % | 12 % |  |  |  | 0 |"]


def test_what_was_not_verified_makes_no_table(tmp_path):
    ran = run(tmp_path, bench("mixed", "imix", "none", "seal", error_message="NOT VERIFIED: packet 3 was not done"))
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "NOT VERIFIED: packet 3 was not done" in ran.stderr
