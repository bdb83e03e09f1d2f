#include "bench/testpmd.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/machine.h"

namespace sluice::cli::bench {
namespace {

namespace fs = std::filesystem;

constexpr int longest_silence_ms = 10'000;  // it prints every one or two seconds
constexpr unsigned ports = 2;

bool executable(const std::string& path) {
  return std::system(("command -v '" + path + "' >/dev/null 2>&1").c_str()) == 0;
}

std::vector<int> lowest_cores() {
  std::vector<int> cores = allowed_cores();
  cores.resize(std::min<std::size_t>(cores.size(), 2));
  return cores;
}

}  // namespace

Expected<std::unique_ptr<Testpmd>> Testpmd::start() {
  std::error_code ec;
  const fs::path beside = fs::read_symlink("/proc/self/exe", ec).parent_path();
  std::string program = (beside / "dpdk-testpmd").string();
  if (!executable(program)) {
    program = "dpdk-testpmd";
  }
  if (!executable(program)) {
    return make_error("not found beside this program or in PATH; no comparison");
  }
  const fs::path pmds = beside.parent_path() / "pmds";
  const std::vector<int> cores = lowest_cores();
  if (cores.size() < 2) {
    return make_error("needs two cores, and this process may use one; no comparison");
  }
  Expected<std::unique_ptr<Testpmd>> started;
  // With hugepages when they are there, as it runs best. Its main core only prints, so the lowest one forwards.
  for (const bool hugepages : {true, false}) {
    started = start(fmt::format(
        "exec '{}' {} -m 128 --no-pci --no-telemetry {} -l {},{} --main-lcore {} --vdev net_null0 --vdev net_null1 -- "
        "--nb-cores=1 --forward-mode=mac --auto-start --total-num-mbufs=16384 --burst=64 --stats-period 1",
        program, hugepages ? "--in-memory" : "--no-huge --no-shconf",
        fs::is_directory(pmds, ec) ? "-d '" + pmds.string() + "'" : "", cores[0], cores[1], cores[1]));
    if (started) {
      (*started)->hugepages_ = hugepages;
      break;
    }
  }
  return started;
}

Expected<std::unique_ptr<Testpmd>> Testpmd::start(const std::string& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return make_error("no pipe to read its output from");
  }
  const pid_t process = fork();
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(ends[1], STDOUT_FILENO) < 0 ||
        dup2(ends[1], STDERR_FILENO) < 0) {
      _exit(127);
    }
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  if (process < 0) {
    close(ends[0]);
    return make_error("no process for it");
  }
  std::unique_ptr<Testpmd> testpmd(new Testpmd(process, ends[0]));
  // The first rate is over a time in which it only started.
  for (int print = 0; print < 2; ++print) {
    if (const auto rate = testpmd->next_rate(); !rate) {
      return tl::unexpected(rate.error());
    }
  }
  kill(process, SIGSTOP);
  return testpmd;
}

Testpmd::~Testpmd() {
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  close(output_);
}

std::optional<double> Testpmd::take_rate() {
  const std::string key = "Rx-pps:";
  double sum = 0;
  std::size_t at = 0;
  for (unsigned port = 0; port < ports; ++port) {
    at = text_.find(key, at);
    const std::size_t end = at == std::string::npos ? at : text_.find('\n', at);
    if (end == std::string::npos) {
      return std::nullopt;
    }
    sum += std::strtod(text_.c_str() + at + key.size(), nullptr);
    at = end;
  }
  text_.erase(0, at);
  return sum / 1e6;
}

Expected<double> Testpmd::next_rate() {
  for (;;) {
    if (const auto rate = take_rate()) {
      return *rate;
    }
    pollfd output{output_, POLLIN, 0};
    if (poll(&output, 1, longest_silence_ms) <= 0) {
      return make_error(fmt::format("printed no rate for {} s", longest_silence_ms / 1000));
    }
    char buffer[4096];
    const ssize_t got = read(output_, buffer, sizeof buffer);
    if (got <= 0) {
      return make_error("ended without a rate");
    }
    text_.append(buffer, static_cast<std::size_t>(got));
  }
}

void Testpmd::forget_output() {
  char buffer[4096];
  for (pollfd output{output_, POLLIN, 0}; poll(&output, 1, 0) > 0 && read(output_, buffer, sizeof buffer) > 0;) {
  }
  text_.clear();
}

Expected<double> Testpmd::sample() {
  forget_output();
  kill(process_, SIGCONT);
  // The first one is over the time in which it stood still.
  auto rate = next_rate();
  rate = rate ? next_rate() : rate;
  kill(process_, SIGSTOP);
  if (rate && *rate == 0) {
    return make_error("forwards nothing");
  }
  return rate;
}

}  // namespace sluice::cli::bench
