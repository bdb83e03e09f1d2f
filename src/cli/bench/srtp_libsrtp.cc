#include "cli/bench/srtp_libsrtp.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/machine.h"
#include "cli/bench/every_core.h"
#include "cli/bench/libsrtp_api.h"
#include "packet/headers.h"

namespace sluice::cli::bench {
namespace {

constexpr std::chrono::seconds start_patience{30};
constexpr std::size_t rtp_bytes = 12, key_bytes = 46;  // the longest key and salt

// The streams of one core: every streams-th packet is of the same stream, and stream s of core s % cores.
class Core {
 public:
  Core(const LibsrtpApi& api, const SrtpPackets& packets, std::uint32_t streams, std::size_t core, std::size_t cores)
      : api_(api) {
    for (std::uint32_t i = 0; i < packets.count(); ++i) {
      if (i % streams % cores != core) continue;
      packets_.push_back({static_cast<std::uint32_t>(i % streams / cores), packets.clear_bytes(i), memory_.size()});
      memory_.resize(memory_.size() + SrtpPackets::pitch);
      write_header(memory_.data() + packets_.back().at, i % streams);
    }
    sessions_.resize((streams + cores - 1 - core) / cores, nullptr);
    sequence_.resize(sessions_.size(), 0);
  }
  Core(const Core&) = delete;
  ~Core() {
    for (srtp_t session : sessions_) {
      if (session != nullptr) api_.dealloc(session);
    }
  }

  Expected<void> open_sessions(srtp_policy_t& policy, std::mt19937& random) {
    for (srtp_t& session : sessions_) {
      std::generate_n(policy.key, key_bytes, [&] { return static_cast<unsigned char>(random()); });
      if (api_.create(&session, &policy) != srtp_err_status_ok) {
        session = nullptr;
        return make_error("libsrtp refuses a session");
      }
    }
    return {};
  }

  CoreShare protect(const std::atomic<bool>& stop) {
    CoreShare done;
    while (!stop.load(std::memory_order_relaxed) && !refused_ && !packets_.empty()) {
      for (const Packet& packet : packets_) {
        if (stop.load(std::memory_order_relaxed)) break;
        auto octets = static_cast<int>(packet.bytes);
        std::uint8_t* const rtp = memory_.data() + packet.at;
        const std::uint16_t sequence = packet::be16(sequence_[packet.session]++);
        std::memcpy(rtp + 2, &sequence, sizeof sequence);
        refused_ = api_.protect(sessions_[packet.session], rtp, &octets) != srtp_err_status_ok;
        if (refused_) break;
        ++done.frames;
        done.bytes += static_cast<std::uint64_t>(octets);
      }
    }
    return done;
  }
  bool refused() const { return refused_; }

 private:
  struct Packet {
    std::uint32_t session, bytes;  // of RTP
    std::size_t at;
  };

  static void write_header(std::uint8_t* at, std::uint32_t ssrc) {
    const std::uint8_t version_and_type[] = {0x80, 96};
    const std::uint32_t ssrc_on_wire = packet::be32(ssrc);
    std::memset(at, 0, rtp_bytes);
    std::memcpy(at, version_and_type, sizeof version_and_type);
    std::memcpy(at + 8, &ssrc_on_wire, sizeof ssrc_on_wire);
  }

  const LibsrtpApi& api_;
  std::vector<Packet> packets_;
  std::vector<std::uint8_t> memory_;
  std::vector<srtp_t> sessions_;
  std::vector<std::uint16_t> sequence_;  // of each session's next packet
  bool refused_ = false;
};

// What the processes share.
struct Shared {
  std::atomic<std::uint32_t> ready{0}, failed{0};
  std::atomic<bool> go{false}, stop{false};
  std::atomic<std::uint64_t> frames{0}, bytes{0};
  char why[128] = {};  // of the first that failed
};
using SharedMemory = std::unique_ptr<Shared, void (*)(Shared*)>;

SharedMemory share_memory() {
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return {memory == MAP_FAILED ? nullptr : new (memory) Shared, [](Shared* shared) { munmap(shared, sizeof *shared); }};
}

// One core's process.
Expected<void> protect_share(const SrtpPackets& packets, const SrtpSuite& suite, std::uint32_t streams,
                             std::size_t core, const std::vector<int>& cores, Shared& shared) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cores[core]), &set);
  sched_setaffinity(0, sizeof set, &set);
  const auto api = LibsrtpApi::load();
  if (!api) return tl::unexpected(api.error());
  if (api->init() != srtp_err_status_ok) return make_error("libsrtp does not start");
  const ChooseLibsrtpSuite choose = suite.tag_bytes == 4 ? nullptr : api->suite(suite.name);
  if (choose == nullptr) return make_error(std::string("libsrtp is not measured with ") + suite.name);
  std::array<unsigned char, key_bytes> key = {};
  srtp_policy_t policy = {};
  choose(&policy.rtp);
  choose(&policy.rtcp);
  policy.key = key.data();
  policy.ssrc.type = ssrc_any_outbound;
  policy.window_size = 128;
  Core mine(*api, packets, streams, core, cores.size());
  std::mt19937 random(static_cast<unsigned>(core));
  if (auto ok = mine.open_sessions(policy, random); !ok) return ok;
  ++shared.ready;
  while (!shared.go) std::this_thread::yield();
  const CoreShare share = mine.protect(shared.stop);
  if (mine.refused()) return make_error("libsrtp refuses a packet");
  shared.frames += share.frames;
  shared.bytes += share.bytes;
  return {};
}

void run_process(const SrtpPackets& packets, const SrtpSuite& suite, std::uint32_t streams, std::size_t core,
                 const std::vector<int>& cores, Shared& shared) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto ok = protect_share(packets, suite, streams, core, cores, shared);
  if (!ok && shared.failed++ == 0) {
    std::strncpy(shared.why, ok.error().message.c_str(), sizeof shared.why - 1);
  }
  _exit(ok ? 0 : 1);
}

}  // namespace

Expected<Outcome> libsrtp_on_all_cores(const SrtpPackets& packets, const SrtpSuite& suite, std::uint32_t streams,
                                       double seconds) {
  using Clock = std::chrono::steady_clock;
  const SharedMemory shared = share_memory();
  if (shared == nullptr) return make_error("no memory for libsrtp's processes");
  const std::vector<int> cores = allowed_cores();
  std::vector<pid_t> processes;
  bool forked = true;
  for (std::size_t core = 0; core < cores.size() && forked; ++core) {
    const pid_t process = fork();
    if (process == 0) run_process(packets, suite, streams, core, cores, *shared);
    forked = process > 0;
    if (forked) processes.push_back(process);
  }
  const auto patience = Clock::now() + start_patience;
  while (forked && shared->ready < cores.size() && shared->failed == 0 && Clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const bool all_ready = shared->ready == cores.size();
  const auto begin = Clock::now();
  shared->go = true;
  std::this_thread::sleep_for(std::chrono::duration<double>(all_ready ? seconds : 0));
  shared->stop = true;
  const std::chrono::duration<double> spent = Clock::now() - begin;
  bool all_ended = true;
  for (const pid_t process : processes) {
    if (!all_ready) kill(process, SIGKILL);
    int status = 0;
    all_ended = waitpid(process, &status, 0) == process && status == 0 && all_ended;
  }
  if (shared->why[0] != 0) return make_error(shared->why);
  if (!all_ready || !all_ended) return make_error("libsrtp's processes did not start or end");
  Outcome out;
  out.seconds = spent.count();
  out.frames = shared->frames;
  out.bytes = shared->bytes;
  return out;
}

}  // namespace sluice::cli::bench
