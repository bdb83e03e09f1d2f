#include "cli/bench/srtp_libsrtp.h"

#include <dlfcn.h>
#include <srtp2/srtp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "base/machine.h"
#include "cli/bench/every_core.h"

namespace sluice::cli::bench {
namespace {

constexpr const char* library_name = "libsrtp2.so.1";
constexpr std::size_t rtp_bytes = 12, key_bytes = 46;  // the longest key and salt

struct Api {
  decltype(&srtp_init) init;
  decltype(&srtp_create) create;
  decltype(&srtp_dealloc) dealloc;
  decltype(&srtp_protect) protect;
  decltype(&srtp_crypto_policy_set_rtp_default) cm_128_80;
  decltype(&srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80) cm_256_80;
  decltype(&srtp_crypto_policy_set_aes_gcm_128_16_auth) gcm_128;
  decltype(&srtp_crypto_policy_set_aes_gcm_256_16_auth) gcm_256;
};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// The streams of one core: every streams-th packet is of the same stream, and stream s of core s % cores.
class Core {
 public:
  Core(const Api& api, const SrtpPackets& packets, std::uint32_t streams, std::size_t core, std::size_t cores)
      : api_(api) {
    for (std::uint32_t i = 0; i < packets.count(); ++i) {
      if (i % streams % cores != core) continue;
      const auto bytes = static_cast<std::uint32_t>(packets.bytes(i, 1));
      packets_.push_back({static_cast<std::uint32_t>(i % streams / cores), bytes, memory_.size()});
      memory_.resize(memory_.size() + SrtpPackets::pitch);
      write_header(memory_.data() + packets_.back().at, i % streams, static_cast<std::uint16_t>(i / streams));
    }
    sessions_.resize((streams + cores - 1 - core) / cores, nullptr);
  }
  Core(Core&& other) noexcept
      : api_(other.api_),
        packets_(std::move(other.packets_)),
        memory_(std::move(other.memory_)),
        sessions_(std::exchange(other.sessions_, {})) {}
  Core& operator=(Core&&) = delete;
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
        auto octets = static_cast<int>(packet.bytes - SrtpPackets::header_bytes);
        refused_ = api_.protect(sessions_[packet.session], memory_.data() + packet.at, &octets) != srtp_err_status_ok;
        if (refused_) break;
        ++done.frames;
        done.bytes += packet.bytes;
      }
    }
    return done;
  }
  bool refused() const { return refused_; }

 private:
  struct Packet {
    std::uint32_t session, bytes;  // of the frame
    std::size_t at;
  };

  static void write_header(std::uint8_t* at, std::uint32_t ssrc, std::uint16_t sequence) {
    const std::array<std::uint8_t, rtp_bytes> header = {0x80,
                                                        96,
                                                        static_cast<std::uint8_t>(sequence >> 8),
                                                        static_cast<std::uint8_t>(sequence),
                                                        0,
                                                        0,
                                                        0,
                                                        0,
                                                        static_cast<std::uint8_t>(ssrc >> 24),
                                                        static_cast<std::uint8_t>(ssrc >> 16),
                                                        static_cast<std::uint8_t>(ssrc >> 8),
                                                        static_cast<std::uint8_t>(ssrc)};
    std::memcpy(at, header.data(), header.size());
  }

  const Api& api_;
  std::vector<Packet> packets_;
  std::vector<std::uint8_t> memory_;
  std::vector<srtp_t> sessions_;
  bool refused_ = false;
};

class Loaded final : public LibSrtp {
 public:
  explicit Loaded(const Api& api) : api_(api) {}

  Expected<Outcome> protect_on_all_cores(const SrtpPackets& packets, const SrtpSuite& suite, std::uint32_t streams,
                                         double seconds) override {
    std::array<unsigned char, key_bytes> key = {};
    srtp_policy_t policy = {};
    for (srtp_crypto_policy_t* part : {&policy.rtp, &policy.rtcp}) {
      if (!choose(suite.name, *part)) return make_error(std::string("libsrtp is not measured with ") + suite.name);
    }
    policy.key = key.data();
    policy.ssrc.type = ssrc_any_outbound;
    policy.window_size = 128;
    policy.allow_repeat_tx = 1;  // the same packets again and again
    std::mt19937 random(5);
    const std::size_t count = allowed_cores().size();
    std::vector<Core> cores;
    cores.reserve(count);
    for (std::size_t c = 0; c < count; ++c) {
      cores.emplace_back(api_, packets, streams, c, count);
      if (auto ok = cores.back().open_sessions(policy, random); !ok) return tl::unexpected(ok.error());
    }
    const Outcome out = on_every_core(
        seconds, [&](std::size_t core, const std::atomic<bool>& stop) { return cores[core].protect(stop); });
    if (std::any_of(cores.begin(), cores.end(), [](const Core& core) { return core.refused(); })) {
      return make_error("libsrtp refuses a packet");
    }
    return out;
  }

 private:
  bool choose(std::string_view suite, srtp_crypto_policy_t& policy) const {
    const std::pair<std::string_view, decltype(api_.gcm_128)> known[] = {{"AES_CM_128_HMAC_SHA1_80", api_.cm_128_80},
                                                                         {"AES_256_CM_HMAC_SHA1_80", api_.cm_256_80},
                                                                         {"AEAD_AES_128_GCM", api_.gcm_128},
                                                                         {"AEAD_AES_256_GCM", api_.gcm_256}};
    for (const auto& [name, set] : known) {
      if (suite == name) {
        set(&policy);
        return true;
      }
    }
    return false;
  }

  Api api_;
};

}  // namespace

Expected<std::unique_ptr<LibSrtp>> LibSrtp::load() {
  void* const library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return make_error(std::string("no libsrtp: ") + dlerror());
  Api api = {};
  if (!find(library, "srtp_init", api.init) || !find(library, "srtp_create", api.create) ||
      !find(library, "srtp_dealloc", api.dealloc) || !find(library, "srtp_protect", api.protect) ||
      !find(library, "srtp_crypto_policy_set_rtp_default", api.cm_128_80) ||
      !find(library, "srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80", api.cm_256_80) ||
      !find(library, "srtp_crypto_policy_set_aes_gcm_128_16_auth", api.gcm_128) ||
      !find(library, "srtp_crypto_policy_set_aes_gcm_256_16_auth", api.gcm_256)) {
    return make_error(std::string(library_name) + " lacks a function: " + dlerror());
  }
  if (api.init() != srtp_err_status_ok) return make_error("libsrtp does not start");
  return std::make_unique<Loaded>(api);
}

}  // namespace sluice::cli::bench
