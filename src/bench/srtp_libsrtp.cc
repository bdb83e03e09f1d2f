#include "bench/srtp_libsrtp.h"

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
#include "bench/every_core.h"
#include "bench/libsrtp_api.h"
#include "bench/rounds.h"
#include "bench/sealed_check.h"
#include "packet/headers.h"

namespace sluice::cli::bench {
namespace {

constexpr std::chrono::seconds start_patience{30};
constexpr std::size_t rtp_bytes = 12, key_bytes = 46;  // the longest key and salt
constexpr std::size_t most_checked = 64;               // packets of a core

using Clock = std::chrono::steady_clock;
using KeyAndSalt = std::array<unsigned char, key_bytes>;

}  // namespace

// What the processes share. Rounds are counted from 1.
struct LibsrtpOnAllCores::Shared {
  std::size_t cores = 0;
  std::atomic<std::uint32_t> ready{0};             // each for the first round, and for another after each
  std::atomic<std::uint32_t> begun{0}, ended{0};   // the last round that was
  std::atomic<std::uint64_t> frames{0}, bytes{0};  // of a round
  std::atomic<bool> fails{false}, failed{false};   // failed: `why` is there
  char why[128] = {};                              // of the first that fails
};

void LibsrtpOnAllCores::Unmapped::operator()(Shared* shared) const {
  munmap(shared, sizeof *shared);
}

// The streams of one core: every streams-th packet is of the same stream, and stream s of core s % cores.
class LibsrtpOnAllCores::Core {
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

  Expected<void> open_sessions(ChooseLibsrtpSuite choose, srtp::Suite suite, std::mt19937& random) {
    KeyAndSalt key = {};
    srtp_policy_t policy = {};
    choose(&policy.rtp);
    choose(&policy.rtcp);
    policy.key = key.data();
    policy.ssrc.type = ssrc_any_outbound;
    policy.window_size = 128;
    for (std::size_t s = 0; s < sessions_.size(); ++s) {
      std::generate(key.begin(), key.end(), [&] { return static_cast<unsigned char>(random()); });
      if (api_.create(&sessions_[s], &policy) != srtp_err_status_ok) {
        sessions_[s] = nullptr;
        return make_error("libsrtp refuses a session");
      }
      if (s >= std::min(most_checked, packets_.size())) continue;
      if (auto right = check_first(s, suite, key); !right) return right;
    }
    return {};
  }

  // Until that round has ended.
  CoreShare protect(const std::atomic<std::uint32_t>& ended, std::uint32_t round) {
    CoreShare done;
    const auto stops = [&] { return ended.load(std::memory_order_relaxed) >= round; };
    while (!stops() && !refused_ && !packets_.empty()) {
      for (const Packet& packet : packets_) {
        if (stops()) break;
        const std::size_t bytes = protect_one(packet);
        if (refused_) break;
        ++done.frames;
        done.bytes += bytes;
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

  // The first packets are of a session each. Nothing has been protected yet, so this one has sequence number 0.
  Expected<void> check_first(std::size_t session, srtp::Suite suite, const KeyAndSalt& key) {
    const Packet& packet = packets_[session];
    const std::uint8_t* const at = memory_.data() + packet.at;
    const std::vector<std::uint8_t> clear(at, at + packet.bytes);
    const std::size_t bytes = protect_one(packet);
    if (refused_) return make_error("libsrtp refuses a packet");
    return check_sealed(suite, key, {at, bytes}, clear);
  }

  // How long it has become.
  std::size_t protect_one(const Packet& packet) {
    auto octets = static_cast<int>(packet.bytes);
    std::uint8_t* const rtp = memory_.data() + packet.at;
    const std::uint16_t sequence = packet::be16(sequence_[packet.session]++);
    std::memcpy(rtp + 2, &sequence, sizeof sequence);
    refused_ = api_.protect(sessions_[packet.session], rtp, &octets) != srtp_err_status_ok;
    return static_cast<std::size_t>(octets);
  }

  const LibsrtpApi& api_;
  std::vector<Packet> packets_;
  std::vector<std::uint8_t> memory_;
  std::vector<srtp_t> sessions_;
  std::vector<std::uint16_t> sequence_;  // of each session's next packet
  bool refused_ = false;
};

// One core's process. It ends by what goes wrong.
Error LibsrtpOnAllCores::protect_share(const SrtpPackets& packets, const SrtpSuite& suite, std::uint32_t streams,
                                       std::size_t core, Shared& shared) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(allowed_cores()[core]), &set);
  sched_setaffinity(0, sizeof set, &set);
  const auto api = LibsrtpApi::load();
  if (!api) return api.error();
  if (api->init() != srtp_err_status_ok) return {"libsrtp does not start"};
  const ChooseLibsrtpSuite choose = suite.tag_bytes == 4 ? nullptr : api->suite(suite.name);
  const auto named = srtp::suite_named(suite.name);
  if (choose == nullptr || !named) return {std::string("libsrtp is not measured with ") + suite.name};
  Core mine(*api, packets, streams, core, shared.cores);
  std::mt19937 random(static_cast<unsigned>(core));
  if (auto ok = mine.open_sessions(choose, *named, random); !ok) return ok.error();
  for (std::uint32_t round = 1;; ++round) {
    ++shared.ready;
    while (shared.begun < round) std::this_thread::yield();
    const CoreShare share = mine.protect(shared.ended, round);
    if (mine.refused()) return {"libsrtp refuses a packet"};
    shared.frames += share.frames;
    shared.bytes += share.bytes;
  }
}

void LibsrtpOnAllCores::run_process(const SrtpPackets& packets, const SrtpSuite& suite, std::uint32_t streams,
                                    std::size_t core, Shared& shared) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const Error why = protect_share(packets, suite, streams, core, shared);
  if (!shared.fails.exchange(true)) {
    std::strncpy(shared.why, why.message.c_str(), sizeof shared.why - 1);
    shared.failed = true;
  }
  _exit(1);
}

Expected<std::unique_ptr<LibsrtpOnAllCores>> LibsrtpOnAllCores::start(const SrtpPackets& packets,
                                                                      const SrtpSuite& suite, std::uint32_t streams) {
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return make_error("no memory for libsrtp's processes");
  std::unique_ptr<LibsrtpOnAllCores> all(new LibsrtpOnAllCores(std::unique_ptr<Shared, Unmapped>(new (memory) Shared)));
  all->shared_->cores = allowed_cores().size();
  for (std::size_t core = 0; core < all->shared_->cores; ++core) {
    const pid_t process = fork();
    if (process == 0) run_process(packets, suite, streams, core, *all->shared_);
    if (process < 0) return make_error("libsrtp's processes did not start");
    all->processes_.push_back(process);
  }
  if (auto ready = all->await_all(); !ready) return tl::unexpected(ready.error());
  return all;
}

// They wait for a round that does not come.
LibsrtpOnAllCores::~LibsrtpOnAllCores() {
  for (const pid_t process : processes_) {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
}

// Until all are ready for the next round.
Expected<void> LibsrtpOnAllCores::await_all() {
  const std::uint64_t wanted = shared_->cores * (std::uint64_t{shared_->ended} + 1);
  const auto patience = Clock::now() + start_patience;
  while (shared_->ready < wanted && !shared_->failed && Clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (shared_->failed) return make_error(shared_->why);
  return shared_->ready < wanted ? make_error("libsrtp's processes did not start or end") : Expected<void>();
}

Expected<Outcome> LibsrtpOnAllCores::protect(double seconds) {
  shared_->frames = shared_->bytes = 0;
  const auto begin = Clock::now();
  ++shared_->begun;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  ++shared_->ended;
  const std::chrono::duration<double> spent = Clock::now() - begin;
  if (auto ready = await_all(); !ready) return tl::unexpected(ready.error());
  Outcome out;
  out.seconds = spent.count();
  out.frames = shared_->frames;
  out.bytes = shared_->bytes;
  return out;
}

Expected<Outcome> libsrtp_on_all_cores(const SrtpPackets& packets, const SrtpSuite& suite, std::uint32_t streams,
                                       double seconds) {
  const auto all = LibsrtpOnAllCores::start(packets, suite, streams);
  if (!all) return tl::unexpected(all.error());
  return in_rounds(seconds, [&](double each) { return (*all)->protect(each); });
}

}  // namespace sluice::cli::bench
