"""scripts/measure: the rows that benches write become those that docs/results shows, within the time that it has."""

import csv
import os
import subprocess
import time

import pytest
from gateway import ROOT, SLUICE

HEADER = ("bench,label,mpps,gbytes,share,p50_us,p99_us,p999_us,max_us,deadline_misses,lost,frames,goal,ceiling_gbytes,deadline_us,"
          "ns_per_frame,ns_low,ns_high,late_stalled,refused,setting,device_max_us,dropped,rounds,mpps_low,mpps_high")


def line(bench, label, mpps, gbytes=0.0, share="", late=0, lost=0, refused=0, frames=1_000_000, deadline="", setting="", p99=""):
    return (f"{bench},{label},{mpps},{gbytes},{share},,{p99},,,{late},{lost},{frames},,{55.4 if share else ''},{deadline},,,,0,{refused},"
            f"{setting},,0,5,{0.9 * mpps:.3f},{1.1 * mpps:.3f}")


SRTP = "AES_CM_128_HMAC_SHA1_80 1370 B 1000 streams"
MEDIA = "AES_CM_128_HMAC_SHA1_80 protect 1370 5 ms"
BENCHES = {
    "route": [line("route", "cuda:0 IPv4 full-load", 400.0, 25.6, deadline=1000, setting="14 lanes on 15 cores", p99=700, late=3),
              line("route", "cuda:0 IPv4 zero-load", 500.0, 32.0), line("route", "cpu IPv4 full-load", 90.0, 5.76),
              line("route", "testpmd mac on null ports beside cuda:0", 25.0), line("route", "testpmd mac on null ports beside cpu", 26.0)],
    "inspect": [line("inspect", f"{device} acl + inspect + route {traffic}", 50.0, 30.0, share=0.5, deadline=1000)
                for device in ("cuda:0", "cpu")
                for traffic in ("heavy-tail UDP text", "heavy-tail TCP text", "1500 UDP text", "heavy-tail HTTP text")],
    "media": [line("media", f"cuda:0 {MEDIA} saturated", 30.0, 41.1, share=0.8, deadline=5000, setting="1000 streams; 14 lanes"),
              line("media", f"cuda:0 {MEDIA} held 2 s", 20.0, 27.4, 0.65, late=20, lost=100, refused=150, frames=999_750, deadline=5000)],
    "srtp": [line("srtp", f"{SRTP} auto {what}", mpps, 10.0) for what, mpps in (("sealed", 35.0), ("libsrtp", 3.0), ("opened", 34.0))],
    "ipsec": [line("ipsec", f"{device} {way} aes128-sha1 {size} 1000 SAs", mpps, mpps * length / 1000, share,
                   setting="20.0 Gbit/s in clear" + ("; 14 lanes" if share else ""))
              for device, mpps, share in (("cuda:0", 18.0, 0.5), ("cpu", 9.0, 0.25), ("rte_ipsec on 16 cores", 11.0, ""))
              for size, length in (("1408", 1408), ("imix", 373)) for way in ("out", "in")],
    "acl": [line("acl", f"filters rte_acl {search} on 16 cores", mpps) for search, mpps in (("AVX2", 400.0), ("AVX-512 in 512 bits", 800.0))],
}


@pytest.fixture
def measure(tmp_path):
    """Runs it over a program that writes these rows, from a folder of its own; `sleeps`: benches that never end by themselves."""
    bin_folder, out = tmp_path / "bin", tmp_path / "rows.csv"
    bin_folder.mkdir()

    def run(*words, benches=None, sleeps=(), fails=()):
        for name, lines in (BENCHES if benches is None else benches).items():
            (bin_folder / f"{name}.csv").write_text("\n".join([HEADER, *lines]) + "\n", encoding="ascii")
        (bin_folder / "sluice").write_text(
            '#!/bin/sh\nname=$2\necho "$@"\nwhile [ $# -gt 1 ]; do shift; done\n'
            f'[ ! -f "$(dirname "$0")/$name.csv" ] || cp "$(dirname "$0")/$name.csv" "$1"\n'
            f'case " {" ".join(sleeps)} " in *" $name "*) sleep 60 & wait ;; esac\n'
            f'case " {" ".join(fails)} " in *" $name "*) exit 1 ;; esac\n', encoding="ascii")
        (bin_folder / "sluice").chmod(0o755)
        ran = subprocess.run([ROOT / "scripts" / "measure", "--out", out, "--logs", tmp_path / "logs", "--machine", "a GPU; 16 cores",
                              *words], capture_output=True, text=True, timeout=60, check=False,
                             env={**os.environ, "SLUICE_BIN": str(bin_folder)})
        rows = {}
        if out.exists():
            with out.open(encoding="utf-8") as file:
                rows = {tuple(row[name] for name in ("workload", "side", "load")): row for row in csv.DictReader(file) if "workload" in row}
        return ran, rows
    return run


def test_a_bench_s_rows_become_results(measure, tmp_path):
    (tmp_path / "filters").touch()
    ran, rows = measure("--acl", tmp_path / "filters", "--lanes", "14", "--commit", "0123abcd")
    router = rows["router-ipv4", "GPU", "saturated"]
    assert {name: router[name] for name in ("mpps", "mpps_low", "mpps_high", "repetitions", "gbits", "packet_bytes", "lanes")} == {
        "mpps": "400.000", "mpps_low": "360.000", "mpps_high": "440.000", "repetitions": "5", "gbits": "204.800", "packet_bytes": "64",
        "lanes": "14"}
    assert (router["share"], router["share_of"], router["p99_us"], router["late_ppm"]) == ("0.8000", "zero load", "700", "3.00")
    assert (router["commit"], router["machine"]) == ("0123abcd", "a GPU; 16 cores")
    held = rows["media", "GPU", "held"]
    assert (held["late_ppm"], held["not_admitted_ppm"], held["share_of"]) == ("20.01", "250.00", "both ways")
    assert rows["chain-http", "cores", "saturated"]["lanes"] == "14"
    assert (rows["router-ipv4", "testpmd", "saturated"]["mpps"], rows["router-ipv4", "testpmd", "saturated"]["lanes"]) == ("26.000", "1")
    assert (rows["acl", "rte_acl", "saturated"]["mpps"], rows["acl", "rte_acl", "saturated"]["lanes"]) == ("800.000", "16")
    assert "--acl filters " in rows["chain-udp", "GPU", "saturated"]["command"], "no folder of this machine is published"
    assert rows["srtp", "GPU", "saturated"]["lanes"] == ""
    tunnels = {(workload, side): [row[name] for name in ("mpps", "lanes", "packet_bytes", "share", "share_of")]
               for (workload, side, _), row in rows.items() if workload.startswith("ipsec-")}
    assert len(tunnels) == 12 and tunnels["ipsec-in-imix", "GPU"] == ["18.000", "14", "373", "0.5000", "both ways"]
    assert tunnels["ipsec-out-1408", "cores"] == ["9.000", "14", "1408", "0.2500", "both ways"]
    assert tunnels["ipsec-out-1408", "rte_ipsec"] == ["11.000", "16", "1408", "", ""]
    assert "--lanes 14 --seconds 1.5 --algorithms aes128-sha1 --sizes 1408,imix --sas 1000 " in rows["ipsec-in-1408", "GPU", "saturated"]["command"]
    assert ran.returncode == 1
    assert "measure: left out: router-ipv6 GPU saturated: " in ran.stdout and "measure: left out: echo GPU held: " in ran.stdout


def test_new_rows_replace_those_of_before_and_others_stay(measure):
    measure("--only", "router,media")
    _, rows = measure("--only", "router", benches={"route": [line("route", "cuda:0 IPv4 full-load", 410.0, 26.2)]})
    assert rows["router-ipv4", "GPU", "saturated"]["mpps"] == "410.000"
    assert rows["media", "GPU", "saturated"]["mpps"] == "30.000" and rows["router-ipv4", "cores", "saturated"]["mpps"] == "90.000"


def test_it_ends_when_its_time_is_up_and_says_what_is_missing(measure):
    began = time.monotonic()
    ran, rows = measure("--minutes", "0.1", sleeps=("inspect",))
    assert time.monotonic() - began < 20
    assert rows["chain-udp", "GPU", "saturated"]["mpps"] == "50.000", "what it had written by then counts"
    assert "measure: left out: media GPU held: the time was up" in ran.stdout and ran.returncode == 1


def test_a_bench_that_fails_is_named_and_the_others_run(measure, tmp_path):
    (tmp_path / "filters").touch()
    ran, rows = measure("--only", "router,acl", "--acl", tmp_path / "filters", fails=("route",), benches={**BENCHES, "route": []})
    assert ran.returncode == 1 and "acl" in {workload for workload, _, _ in rows}
    assert "measure: left out: router-ipv4 GPU saturated: " in ran.stdout and "router.txt: the bench ended with status 1" in ran.stdout


def test_on_cores_alone_no_row_of_a_gpu_is_wanted(measure):
    ran, rows = measure("--device", "cpu", "--only", "router,srtp")
    assert {side for _, side, _ in rows} == {"cores", "testpmd"}
    assert "left out: srtp libsrtp saturated: it is measured with a GPU" in ran.stdout and "GPU saturated" not in ran.stdout


@pytest.mark.parametrize("words, said", [
    (["--only", "routers"], "--only routers: the steps are router, chain, "), (["--rules", "/nowhere"], "--rules /nowhere: is no file"),
    (["--minutes", "0"], "--minutes and --seconds are above 0"), (["--device", "cuda:1"], "invalid choice: 'cuda:1'"),
])
def test_what_cannot_be_measured_is_refused_at_once(measure, words, said):
    ran, _ = measure(*words)
    assert ran.returncode == 2 and said in ran.stderr


def test_a_file_of_other_rows_is_refused_before_anything_runs(measure, tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n", encoding="ascii")
    ran, _ = measure()
    assert ran.returncode == 1 and "name another file" in ran.stderr and ran.stdout == ""


def test_the_real_bench_s_rows_are_found(tmp_path):
    """Of the classifier, which is the quickest: labels and columns are the bench's."""
    (tmp_path / "few").write_text("".join(f"@10.0.{n}.0/24\t192.0.2.0/24\t0 : 65535\t{n} : 65535\t0x06/0xFF\t0x0000/0x0000\n" for n in range(20)), encoding="ascii")
    ran = subprocess.run([ROOT / "scripts" / "measure", "--out", tmp_path / "rows.csv", "--device", "cpu", "--only", "acl", "--acl", tmp_path / "few",
                          "--seconds", "0.2"], capture_output=True, text=True, timeout=120, check=False,
                         env={**os.environ, "SLUICE_BIN": str(SLUICE.resolve().parent)})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    with (tmp_path / "rows.csv").open(encoding="utf-8") as file:
        row = next(csv.DictReader(file))
    assert (row["workload"], row["side"], row["repetitions"]) == ("acl", "rte_acl", "5")
    assert 0 < float(row["mpps_low"]) <= float(row["mpps"]) <= float(row["mpps_high"]) and row["command"].endswith("--rules few --device cpu --no-goals")


def test_the_real_gateway_of_tunnels_has_all_rows_of_cores(tmp_path):
    """Beside a GPU their labels differ in the device alone."""
    ran = subprocess.run([ROOT / "scripts" / "measure", "--out", tmp_path / "rows.csv", "--device", "cpu", "--only", "ipsec", "--lanes", "1",
                          "--seconds", "0.02"], capture_output=True, text=True, timeout=120, check=False,
                         env={**os.environ, "SLUICE_BIN": str(SLUICE.resolve().parent)})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    with (tmp_path / "rows.csv").open(encoding="utf-8") as file:
        rows = {(row["workload"], row["side"]): row for row in csv.DictReader(file)}
    assert set(rows) == {(f"ipsec-{way}-{size}", side) for way in ("out", "in") for size in ("1408", "imix") for side in ("cores", "rte_ipsec")}
    cores = str(len(os.sched_getaffinity(0)))
    assert {(side, row["lanes"]) for (_, side), row in rows.items()} == {("cores", "1"), ("rte_ipsec", cores)}
    for row in rows.values():
        assert 0 < float(row["mpps_low"]) <= float(row["mpps"]) <= float(row["mpps_high"])
