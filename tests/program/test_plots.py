"""What scripts/plot-* draw of rows that the program writes, by the texts and marks of the SVG file; and what they refuse."""

import os
import pathlib
import subprocess
import xml.etree.ElementTree

import pytest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
SVG = "{http://www.w3.org/2000/svg}"
PYTHON = "/usr/bin/python3"  # the scripts'
needs_matplotlib = pytest.mark.skipif(subprocess.run([PYTHON, "-c", "import matplotlib"], check=False, capture_output=True).returncode != 0,
                                      reason="needs python3-matplotlib (scripts/setup plot)")

PROFILE = ("device,chain,suite,lanes,overlap,cycle_ns,streams,packet,offered,carried,batches,batch_bytes,p50_ns,p99_ns,p999_ns,longest_ns,"
           "round_ns,forwarding_ns,overruns,late,lost,schedulable,capacity")
# Of two cycles and numbers of CUDA streams; with the shorter cycle nothing held. The cell of 200 B and those at half the rate are
# not in the panel of the longest T_S.
CYCLES = [PROFILE] + [f"NVIDIA X1,srtp;bridge,SUITE_80,14,4,{row}" for row in (
    "100000,2,1504,40000000000,39000000000,50,500000,300000,400000,450000,500000,2000,9000,7,1,2,0,0",
    "100000,4,1504,40000000000,39000000000,50,500000,200000,250000,290000,300000,2000,9000,0,0,0,1,0",
    "400000,2,1504,40000000000,40000000000,50,2000000,900000,950000,990000,1000000,2000,9000,0,0,0,1,30000000000",
    "400000,4,1504,40000000000,40000000000,50,2000000,500000,550000,590000,600000,2000,9000,0,0,0,1,30000000000",
    "400000,4,1504,20000000000,20000000000,50,1000000,250000,300000,310000,320000,2000,9000,0,0,0,1,30000000000",
    "400000,4,200,20000000000,20000000000,50,1000000,350000,400000,410000,420000,2000,9000,0,0,0,1,30000000000")]
INLINE = [PROFILE] + [f"cpu,srtp;bridge,,1,0,0,0,{row}" for row in (
    "1504,1000000000,1000000000,900,30000,20000,30000,40000,50000,0,0,0,0,0,1,2000000000",
    "1504,2000000000,2000000000,900,60000,40000,50000,60000,70000,0,0,0,0,0,1,2000000000",
    "200,1000000000,1000000000,900,30000,80000,90000,95000,99000,0,0,0,0,0,0,2000000000")]
FIGURES = ["figure,series,x_name,x,y_name,y",
           *(f"table 1,{streams} streams,packets a stream,{x},Gbit/s,{x / 100}" for streams in (1, 8) for x in (256, 1024)),
           "figure 6,1504 B; 4 streams,cycle (ms),0.1,latency (us),70", "figure 6,1504 B; 4 streams,cycle (ms),0.4,latency (us),200",
           "figure 6,200 B; 4 streams,cycle (ms),0.1,latency (us),90", "figure 6,200 B; 4 streams,cycle (ms),0.4,latency (us),300",
           "figure 9,alone,lanes,1,Gbit/s,10", "figure 9,alone,lanes,2,Gbit/s,20"]
BENCHES = ["bench,label,mpps,gbytes,share,p50_us,p99_us,p999_us,max_us,deadline_misses,lost,frames,goal,ceiling_gbytes,deadline_us,"
           "ns_per_frame,ns_low,ns_high,late_stalled,refused,setting",
           "link,both ways,,50.5,,,,,,0,0,0,,,,,,,0,0,", "echo,1408 held,30,44.7,0.88,900,1400,1500,4300,5,0,1000000,0.90,50.5,5000,,,,2,0,",
           "route,lookup,,,,,,,,0,0,0,,,,12.5,11,14,0,0,"]
ORDER = ["scheme,jitter,capacity,out_of_order,device_kept,ticks_added", "none,2,8,0.25,1,0", "sorted,2,8,0,0.5,3", "none,4,8,0.5,1,0"]
SOAK = ["seconds,resident,changes,frames,dropped,late", "0,1048576,0,0,0,0", "10,2097152,100,5000000,3,1"]


def plot(tmp_path, script, lines, **environment):
    rows = tmp_path / "rows.csv"
    rows.write_bytes(lines if isinstance(lines, bytes) else "".join(f"{line}\n" for line in lines).encode())
    return subprocess.run([SCRIPTS / script, rows, tmp_path / "out.svg"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                          check=False, env={**os.environ, **environment})


def drawn(tmp_path, script, lines):
    """(the texts, the styles of all points, legends' with them)"""
    ran = plot(tmp_path, script, lines)
    assert ran.returncode == 0, ran.stdout
    root = xml.etree.ElementTree.parse(tmp_path / "out.svg").getroot()
    assert root.tag == f"{SVG}svg"
    return {"".join(text.itertext()).strip() for text in root.iter(f"{SVG}text")}, [use.get("style") for use in root.iter(f"{SVG}use")]


@needs_matplotlib
@pytest.mark.parametrize(("script", "lines", "labels"), [
    pytest.param("plot-profile", INLINE, {
        "cpu: srtp, bridge", "200 B, median", "200 B, p99.9", "1504 B, median", "1504 B, p99.9", "carried, Gbit/s", "200 B", "1504 B"},
        id="profile-inline"),
    pytest.param("plot-figures", FIGURES, {
        "table 1", "1 streams", "8 streams", "the paper, 1 to 8", "packets a stream", "figure 6: 1504 B", "figure 6: 200 B", "4 streams",
        "cycle (ms)", "latency (us)", "figure 9", "alone", "lanes", "Gbit/s"}, id="figures"),
    pytest.param("plot-results", BENCHES, {
        "The link's ceilings", "link both ways", "Share of the link's ceiling", "echo 1408 held", "goal",
        "5 ppm late, 3 ppm not explained by the machine", "Latency and deadline", "p50", "p99.9", "max", "deadline",
        "What a frame costs the router", "route lookup", "12.5", "least and most of the rounds"}, id="results-benches"),
    pytest.param("plot-results", ORDER, {"jitter 2, capacity 8", "jitter 4, capacity 8", "none", "sorted", "% of frames out of order"},
                 id="results-order"),
    pytest.param("plot-results", SOAK, {"Soak: full load while the table churns", "MB resident", "dropped", "late"}, id="results-soak"),
])
def test_panels_and_series_are_named(tmp_path, script, lines, labels):
    texts, _ = drawn(tmp_path, script, lines)
    assert labels <= texts, f"missing: {labels - texts}"


@needs_matplotlib
def test_a_profile_of_cycles(tmp_path):
    texts, points = drawn(tmp_path, "plot-profile", CYCLES)
    labels = {"NVIDIA X1: srtp, bridge SUITE_80", "2 streams", "4 streams", "4 cycles", "at 40 Gbit/s; filled: schedulable", "cycle I, µs",
              "longest T_S, µs", "the highest schedulable rate", "100", "400", "what a byte and a batch cost", "200 B", "1504 B"}
    assert labels <= texts, f"missing: {labels - texts}"
    # For 2 and for 4 streams a cell of the cycle with which nothing held, and another.
    for color in ("#20405f", "#4878a8"):
        assert points.count(f"fill: #ffffff; stroke: {color}") == 1
        assert points.count(f"fill: {color}; stroke: {color}") >= 1


@pytest.mark.parametrize(("script", "lines", "said"), [
    pytest.param("plot-profile", FIGURES, "has no rows of sluice calibrate", id="profile-of-figures"),
    pytest.param("plot-profile", CYCLES[:1], "has no rows of sluice calibrate", id="profile-no-rows"),
    pytest.param("plot-profile", [*CYCLES, "NVIDIA X1,srtp;bri"], "row 7 is none of sluice calibrate: ", id="profile-cut-off"),
    pytest.param("plot-figures", CYCLES, "has no rows of sluice bench figures", id="figures-of-profile"),
    pytest.param("plot-figures", [], "has no rows of sluice bench figures", id="figures-empty"),
    pytest.param("plot-figures", [*FIGURES, "figure 9,alone,lanes,three,Gbit/s,30"], "row 11 is none of sluice bench figures: ", id="figures-no-number"),
    pytest.param("plot-figures", b"\x89PNG\r\n\xff\xfe", "is no CSV file", id="figures-of-picture"),
    pytest.param("plot-results", FIGURES, "neither rows of sluice bench nor two or more of its soak", id="results-of-figures"),
    pytest.param("plot-results", SOAK[:2], "neither rows of sluice bench nor two or more of its soak", id="results-one-row"),
])
def test_rows_of_something_else_are_refused(tmp_path, script, lines, said):
    ran = plot(tmp_path, script, lines)
    assert ran.returncode == 2 and ran.stdout.startswith(f"{script}: {tmp_path}/rows.csv: {said}"), ran.stdout
    assert len(ran.stdout.splitlines()) == 1 and not (tmp_path / "out.svg").exists()


@pytest.mark.parametrize(("paths", "said"), [
    (["none.csv", "out.svg"], "none.csv: No such file or directory"),
    pytest.param(["rows.csv", "none/out.svg"], "none/out.svg: No such file or directory", marks=needs_matplotlib),
    (["rows.csv", "out.png"], "usage: scripts/plot-figures FILE.csv OUT.svg"),
    (["rows.csv"], "usage: scripts/plot-figures FILE.csv OUT.svg"),
], ids=["no-rows", "no-folder", "no-svg", "no-out"])
def test_paths_that_do_not_serve_are_refused(tmp_path, paths, said):
    (tmp_path / "rows.csv").write_text("".join(f"{line}\n" for line in FIGURES), encoding="ascii")
    ran = subprocess.run([SCRIPTS / "plot-figures", *paths], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (2, f"plot-figures: {said}\n")


@pytest.mark.parametrize(("script", "lines"), [("plot-figures", FIGURES), ("plot-profile", CYCLES), ("plot-results", BENCHES)])
def test_without_matplotlib_it_says_what_installs_it(tmp_path, script, lines):
    (tmp_path / "matplotlib.py").write_text("raise ImportError\n", encoding="ascii")
    ran = plot(tmp_path, script, lines, PYTHONPATH=str(tmp_path))
    assert ran.returncode == 2 and ran.stdout.startswith(f"{script}: there is no matplotlib: 'scripts/setup plot' or"), ran.stdout
    assert len(ran.stdout.splitlines()) == 1
