"""Plug-ins: the example built against the installed tree, what is refused, and the commands of docs/write-an-element.md."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest
from frames import write_pcap
from gateway import ROOT, SLUICE

PAGE = ROOT / "docs" / "write-an-element.md"
EXAMPLE = ROOT / "examples" / "plugin"
BUILD = SLUICE.parent
# Registers a function NAME, and a reason with a text of its own where one is given.
SOURCE = """
#include <sluice/plugin.h>
#ifdef REASON
const auto taken = sluice::packet::register_reason(REASON, "another text than the one that is there");
#endif
SLUICE_PLUGIN("small", "0.3", [] {
  const auto make = [](sluice::Settings&, const sluice::engine::PortTable&)
      -> sluice::Expected<std::unique_ptr<sluice::engine::Element>> { return sluice::make_error("none"); };
  return std::vector<sluice::engine::ElementType>{{.name = "small_one", .text = "one", .make = make},
                                                  {.name = NAME, .text = "two", .make = make}};
})
"""

# A function `odd` that goes wrong as the environment says: ODD names the place, WORD is a word for it.
ODD_SOURCE = """
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <sluice/engine/traits.h>
#include <sluice/plugin.h>
using namespace sluice;
namespace {
struct Own : std::runtime_error { using std::runtime_error::runtime_error; };  // its type goes with the file
bool at(const char* place) {
  const char* const odd = std::getenv("ODD");
  return odd != nullptr && std::string(odd) == place;
}
const char* word() { return std::getenv("WORD"); }
int fail(const char* place) {
  if (at(place)) throw Own("no licence\\nfor this");
  return 0;
}
const int at_load = fail("load");
const auto reason = packet::register_reason(at("reason") ? word() : "odd_reason", "of a plug-in");
class Odd final : public engine::Element, public engine::Metrics {
 public:
  void apply(engine::Batch&, engine::Span, engine::Emitter&) override {}
  void* find_trait(std::string_view name) override { return engine::offer<engine::Metrics>(name, this); }
  std::vector<engine::Metric> metrics() const override {
    fail("metrics");
    return {{"odd_looks", "times that it was asked", 7}, {at("metric") ? word() : "odd_others", "others", 8}};
  }
};
}  // namespace
SLUICE_PLUGIN("odd", "0.4", [] {
  fail("elements");
  const auto make = [](Settings&, const engine::PortTable&) -> Expected<std::unique_ptr<engine::Element>> {
    fail("make");
    if (at("null")) return std::unique_ptr<engine::Element>();
    return std::make_unique<Odd>();
  };
  const auto options = []() -> std::vector<OptionSection> {
    fail("options");
    return {{"[odd]"}, {at("section") ? word() : "[[odd.part]]"}};
  };
  engine::ElementType type{.name = at("name") ? word() : "odd", .text = "goes wrong", .make = make, .options = options};
  if (at("no make")) type.make = nullptr;
  return std::vector<engine::ElementType>{type};
})
"""

pytestmark = pytest.mark.skipif(not (BUILD / "cmake_install.cmake").exists(), reason="needs the build folder of the program")


def run(*words, status=0, **more):
    ran = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False, **more)
    assert ran.returncode == status, ran.stdout
    return ran.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Where the program, headers, CMake package and example are installed."""
    place = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", BUILD, "--prefix", place, "--component", "element")
    return place


@pytest.fixture(scope="module")
def built(prefix, tmp_path_factory):
    """The folder in which every command of the page has run; the plug-in is in udp_prefix/build."""
    folder = tmp_path_factory.mktemp("page")
    commands = "\n".join(re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M))
    said = run("bash", "-euxo", "pipefail", "-c", commands, cwd=folder, env={**os.environ, "PREFIX": str(prefix)})
    assert "100% tests passed, 0 tests failed out of 2" in said
    return folder, said


@pytest.fixture(scope="module")
def plugin(built):
    return built[0] / "udp_prefix" / "build" / "udp_prefix.so"


@pytest.fixture(scope="module")
def small(prefix, tmp_path_factory):
    """Makes a plug-in with two functions, the second with this name."""
    folder = tmp_path_factory.mktemp("small")
    flags = subprocess.run(["pkg-config", "--cflags", "libdpdk"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()

    def make(file, name, *defines):
        (folder / "small.cc").write_text(SOURCE, encoding="utf-8")
        made = folder / file
        run("g++", "-std=c++20", "-fPIC", "-shared", "-fno-gnu-unique", f"-I{prefix}/include", *flags, f'-DNAME="{name}"', *defines,
            folder / "small.cc", "-o", made)
        return made
    return make


@pytest.fixture(scope="module")
def odd(prefix, tmp_path_factory):
    folder = tmp_path_factory.mktemp("odd")
    flags = subprocess.run(["pkg-config", "--cflags", "libdpdk"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    (folder / "odd.cc").write_text(ODD_SOURCE, encoding="utf-8")
    run("g++", "-std=c++20", "-fPIC", "-shared", "-fno-gnu-unique", f"-I{prefix}/include", *flags, folder / "odd.cc", "-o", folder / "odd.so")
    return folder / "odd.so"


def cached(name):
    """A variable of the program's build."""
    return re.search(rf"^{name}:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(encoding="utf-8"), re.M)[1]


def functions(*words, status=0):
    """Blocks of `sluice functions` by name, and what is refused."""
    ran = subprocess.run([SLUICE, "functions", *words], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == status, ran.stdout + ran.stderr
    return dict(re.findall(r"^(\w+): (.*?)(?=^\w|\Z)", ran.stdout, re.S | re.M)), ran.stderr


def config(folder, *plugins, chain='"udp_prefix", "bridge"', more=""):
    load = ", ".join(f'"{plugin}"' for plugin in plugins)
    path = folder / "plugins.toml"
    path.write_text(f'[plugins]\nload = [{load}]\n[engine]\ndevice = "cpu"\ndeadline = "50ms"\npoll = "adaptive"\nchain = [{chain}]\n'
                    '[memory]\nhugepages = "off"\nsize = "128M"\nframes = 2048\n[[port]]\nname = "a"\ndevice = "net_null0"\n'
                    f'[[port]]\nname = "b"\ndevice = "net_null1"\n[api]\nlisten = ""\n{more}', encoding="utf-8")
    return path


def refused(plugin, message, folder):
    """Both ways to load it say one line with the path, and nothing of it is left."""
    there, said = functions("--load", plugin, status=2)
    assert said.startswith(f"{plugin}: {message}") and said.count("\n") == 1, said
    assert there.keys() == functions()[0].keys()
    ran = subprocess.run([SLUICE, "check", config(folder, plugin)], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f'{folder}/plugins.toml:2: [plugins] load = [ "') and f": {plugin}: {message}" in ran.stderr
    assert ran.stderr.count("\n") == 1, ran.stderr


def test_the_page_builds_tests_and_lists_the_example(built, plugin):
    assert plugin.exists()
    block = "\n".join(built[1].splitlines()[-4:])
    page = PAGE.read_text(encoding="utf-8")
    assert block.replace(str(plugin), "/home/me/udp_prefix/build/udp_prefix.so") in page


def test_a_plugin_is_listed_with_where_it_is_from(plugin, tmp_path):
    for words in (["--load", plugin], [config(tmp_path, plugin)]):
        there, said = functions(*words)
        assert said == ""
        assert f"from: {plugin} (udp_prefix 1.0)" in there["udp_prefix"] and "settings: port, bytes" in there["udp_prefix"]
        assert "from: built in" in there["route"] and "place: last of the chain" in there["route"]
    assert "udp_prefix" not in functions()[0]


def test_mistakes_of_its_section_have_their_place(plugin, tmp_path):
    path = config(tmp_path, plugin, more='[udp_prefix]\nport = 0\nbytes = "zz"\nbyte = 1\n')
    said = run(SLUICE, "check", path, status=2).splitlines()
    assert [line.split("[udp_prefix] ")[1] for line in said] == [
        "port = 0: allowed is a whole number from 1 to 65535",
        'bytes = "zz": 1 to 8 bytes in hexadecimal are needed, such as "17 00 03 2a"',
        'byte = 1: unknown key; did you mean "bytes"?']
    assert run(SLUICE, "check", config(tmp_path, plugin)).count(": ok: ") == 1


def test_naming_it_twice_loads_it_once(plugin, tmp_path):
    link = tmp_path / "link.so"
    link.symlink_to(plugin)
    assert ": ok: udp_prefix, bridge on 2 ports" in run(SLUICE, "check", config(tmp_path, plugin, plugin, link))


def test_a_missing_file_is_refused(tmp_path):
    refused(tmp_path / "none.so", "there is no such file: install the plug-in, or take it out of the list", tmp_path)


def test_another_kind_of_file_is_refused(tmp_path):
    for name, content in (("text.so", b"not a shared object"), ("empty.so", b"")):
        (tmp_path / name).write_bytes(content)
        refused(tmp_path / name, "is no shared object: ", tmp_path)
    refused(tmp_path, "is a folder: ", tmp_path)


def test_another_version_is_refused_before_its_code_runs(plugin, tmp_path):
    content = plugin.read_bytes()
    mark = re.search(rb"sluice-contract:([0-9a-f]{12}):", content)
    other = tmp_path / "other.so"
    other.write_bytes(content.replace(mark[0], b"sluice-contract:0123456789ab:"))
    refused(other, "was built for another contract of elements, of Sluice ", tmp_path)
    assert "(0123456789ab); this is Sluice " in functions("--load", other, status=2)[1]


def test_one_that_lacks_its_symbol_is_refused(plugin, prefix, tmp_path):
    (tmp_path / "empty.c").write_text("int nothing;\n", encoding="utf-8")
    run("gcc", "-shared", "-fPIC", tmp_path / "empty.c", "-o", tmp_path / "empty.so")
    refused(tmp_path / "empty.so", "has no symbol sluice_plugin: one of its sources has to say SLUICE_PLUGIN()", tmp_path)
    hidden = tmp_path / "hidden.so"
    hidden.write_bytes(plugin.read_bytes().replace(b"\0sluice_plugin\0", b"\0sluice_plugix\0"))
    refused(hidden, "has no symbol sluice_plugin: ", tmp_path)


def test_a_name_that_is_there_is_refused_and_nothing_of_it_is_left(small, plugin, tmp_path):
    refused(small("built_in.so", "acl"), "function 'acl' is there already, built in: give it another name", tmp_path)
    refused(small("twice.so", "small_one"), "function 'small_one' is registered twice, both by this plug-in: ", tmp_path)
    refused(small("section.so", "engine"), "function 'engine' has the name of a section of the configuration: ", tmp_path)
    refused(small("odd.so", "Not a name"), "function 'Not a name': a name has small letters, digits and '_'", tmp_path)
    copy = shutil.copy(plugin, tmp_path / "copy.so")
    there, said = functions("--load", plugin, "--load", copy, status=2)
    assert said == (f"{copy}: function 'udp_prefix' is there already, from {plugin} (udp_prefix 1.0): give it another name, "
                    "or load one of the two\n")
    assert "udp_prefix" in there


def test_a_reason_that_is_there_is_refused_without_an_end_of_the_program(small, tmp_path):
    refused(small("reason.so", "small_two", '-DREASON="acl_denied"'), "reason 'acl_denied' is registered twice: ", tmp_path)


NAME_RULE = ": a name has small letters, digits and '_', and a letter first\n"


@pytest.mark.parametrize(("place", "word", "message"), [
    ("load", "", "fails while it is loaded, in an initialiser: no licence?for this\n"),
    ("elements", "", "fails when it is asked for its functions: no licence?for this\n"),
    ("options", "", "function 'odd': its `options` fails: no licence?for this\n"),
    ("section", "[acl]", "function 'odd' declares the section '[acl]', which is not its own: its sections are [odd] and those in it\n"),
    ("section", "[engine]", "function 'odd' declares the section '[engine]', which is not its own: "),
    ("section", "[[port]]", "function 'odd' declares the section '[[port]]', which is not its own: "),
    ("section", "[oddly]", "function 'odd' declares the section '[oddly]', which is not its own: "),
    ("reason", 'bad x "\n', "reason 'bad x \"?'" + NAME_RULE),
    ("name", "Not\na name", "function 'Not?a name'" + NAME_RULE),
    ("no make", "", "function 'odd' cannot be made: set `make` of its ElementType\n"),
])
def test_what_goes_wrong_while_it_is_loaded_is_one_line(odd, tmp_path, monkeypatch, place, word, message):
    assert "from: " + str(odd) in functions("--load", odd)[0]["odd"]
    monkeypatch.setenv("ODD", place)
    monkeypatch.setenv("WORD", word)
    refused(odd, message, tmp_path)


def test_one_that_threw_is_refused_again(odd, monkeypatch):
    monkeypatch.setenv("ODD", "load")
    there, said = functions("--load", odd, "--load", odd, status=2)
    assert "odd" not in there and said.count(": fails while it is loaded, in an initialiser: no licence?for this\n") == 2


@pytest.mark.parametrize(("place", "message"), [
    ("make", "its make fails: no licence?for this"),
    ("null", "its make returned nothing, neither an element nor an Error"),
])
def test_a_make_that_makes_nothing_is_one_line(odd, tmp_path, monkeypatch, place, message):
    monkeypatch.setenv("ODD", place)
    path = config(tmp_path, odd, chain='"odd", "bridge"', more="[odd]\nkey = 1\n")
    for verb in ("check", "run"):
        assert run(SLUICE, verb, path, status=2) == f"{path}:20: [odd]: function 'odd' of {odd} (odd 0.4): {message}\n"


@pytest.mark.parametrize(("name", "message"), [
    ("drops", "'drops': the name has to begin with the function's, as 'odd_...'"),
    ("odd_", "'odd_': the name has to begin with the function's, as 'odd_...'"),
    ("odd_a b", "'odd_a b'" + NAME_RULE[:-1]),
    ("odd_a\nb", "'odd_a?b'" + NAME_RULE[:-1]),
    ("odd_looks", "'odd_looks' is there twice"),
])
def test_a_metric_without_a_name_of_its_own_ends_the_start(odd, tmp_path, monkeypatch, name, message):
    monkeypatch.setenv("ODD", "metric")
    monkeypatch.setenv("WORD", name)
    path = config(tmp_path, odd, chain='"odd", "bridge"')
    said = run(SLUICE, "run", path, status=2)
    assert f"{path}:7: [engine] chain: function 'odd' of {odd} (odd 0.4): its metric {message}\n" in said, said


def test_metrics_that_throw_are_left_out_and_said_once(odd, tmp_path, monkeypatch):
    write_pcap(tmp_path / "in.pcap", [bytes.fromhex("020000000002" "020000000001" "9000") + bytes(50)] * 3)
    path = config(tmp_path, odd, chain='"odd", "bridge"')
    path.write_text(path.read_text(encoding="utf-8").replace("net_null0", f"net_pcap0,rx_pcap={tmp_path}/in.pcap,tx_pcap={tmp_path}/a.pcap")
                    .replace("net_null1", f"net_pcap1,tx_pcap={tmp_path}/b.pcap"), encoding="utf-8")
    assert re.search(r"^ +odd_looks +7 +times that it was asked$", run(SLUICE, "run", path), re.M)
    monkeypatch.setenv("ODD", "metrics")
    said = run(SLUICE, "run", path)
    assert said.count(f"function 'odd' of {odd} (odd 0.4): its metrics are left out, because metrics() fails: no licence?for this\n") == 1
    assert "odd_looks" not in said


def test_one_that_is_cut_short_is_damaged(plugin, tmp_path):
    content = plugin.read_bytes()
    for size in (30, 3000, len(content) // 2, len(content) - 8):
        (tmp_path / "cut.so").write_bytes(content[:size])
        refused(tmp_path / "cut.so", f"is damaged or cut short: it has {size} bytes, and its headers say ", tmp_path)


def test_an_empty_entry_is_said_to_be_one(tmp_path):
    path = config(tmp_path, "")
    message = "a path is empty: name the file of a plug-in, or take it out of the list\n"
    assert run(SLUICE, "check", path, status=2) == f'{path}:2: [plugins] load = [ "" ]: {message}'
    assert functions("--load", "", status=2)[1] == message


def test_one_that_was_refused_does_not_stand_in_the_way_of_the_next(small):
    bad, good = small("bad.so", "acl"), small("good.so", "small_two")
    there, said = functions("--load", bad, "--load", good, status=2)
    assert said.count("\n") == 1 and {"small_one", "small_two"} <= there.keys()
    assert f"from: {good} (small 0.3)" in there["small_one"]


def test_its_jobs_are_done_and_counted(prefix, tmp_path):
    flags = subprocess.run(["pkg-config", "--cflags", "libdpdk"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    made = tmp_path / "counting.so"
    run("g++", "-std=c++20", "-fPIC", "-shared", f"-I{prefix}/include", *flags, ROOT / "tests" / "program" / "plugin_jobs.cc", "-o", made)
    ethernet = bytes.fromhex("020000000002" "020000000001" "9000")
    write_pcap(tmp_path / "in.pcap", [ethernet + bytes([n % 3] * 50) for n in range(40)])
    path = config(tmp_path, made, chain='"counting", "bridge"')
    path.write_text(path.read_text(encoding="utf-8").replace("net_null0", f"net_pcap0,rx_pcap={tmp_path}/in.pcap,tx_pcap={tmp_path}/a.pcap")
                    .replace("net_null1", f"net_pcap1,tx_pcap={tmp_path}/b.pcap"), encoding="utf-8")
    said = run(SLUICE, "run", path)
    assert "jobs counting: 1024 of 64 bytes, up to 256 to a batch, on cores" in said, said
    found = re.search(r"^jobs +counting: 40 submitted, (\d+) completed \(0 late\), 0 refused .*, (\d+) failed \(0 expired\), 0 in flight; "
                      r"0 by GPUs, (\d+) by cores$", said, re.M)
    assert found, said
    completed, failed, by_cores = map(int, found.groups())
    assert completed + failed == 40 and completed == by_cores
    assert re.search(r"^balance +counters add up: ", said, re.M), said


def test_the_installed_headers_compile(prefix, tmp_path):
    headers = sorted(pathlib.Path(prefix, "include").rglob("*.h"))
    lines = [f'#include "{header.relative_to(prefix / "include")}"\n' for header in headers if header.parent.name != "device" or header.name == "gpu.h"]
    assert len(lines) > 30
    (tmp_path / "all.cc").write_text("".join(lines), encoding="utf-8")
    flags = subprocess.run(["pkg-config", "--cflags", "libdpdk"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    run("g++", "-std=c++20", "-fsyntax-only", "-w", f"-I{prefix}/include", *flags, tmp_path / "all.cc")


def test_the_kernel_decides_as_the_core_does(prefix, tmp_path):
    """By the shim, which runs kernels on the CPU; the example's own build compiles it where there is nvcc."""
    archives = [BUILD / "src" / room / f"libsluice_{room}{of}.a" for of in ("", "_simt") for room in ("engine", "port", "device", "packet", "base")]
    archives = [archive for archive in archives if archive.exists()]
    if not any(archive.name == "libsluice_device_simt.a" for archive in archives):
        pytest.skip("the shim is not built")
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "libdpdk", "libpcap", "spdlog", "libmnl"], stdout=subprocess.PIPE, text=True,
                           check=True).stdout.split()
    # As the archives were: a sanitizer is of a whole program.
    compiler = [cached("CMAKE_CXX_COMPILER"), *cached("CMAKE_CXX_FLAGS").split(), *filter(None, cached("SLUICE_SANITIZERS").split(";"))]
    run(*compiler, "-std=c++20", "-O1", "-w", "-DSLUICE_SIMT=1", "-DSLUICE_ELEMENT_CUDA", f"-I{prefix}/include", f"-I{ROOT}/src/device/simt",
        f"-I{ROOT}/src", f"-I{EXAMPLE}", "-xc++", EXAMPLE / "udp_prefix.cu", EXAMPLE / "udp_prefix.cc", ROOT / "tests" / "program" / "plugin_kernel.cc",
        "-xnone", "-Wl,--start-group", *archives, "-Wl,--end-group", *flags, "-ldl", "-o", tmp_path / "kernel")
    assert "of 300 frames match" in run(tmp_path / "kernel")
