#include "bench/libsrtp_opener.h"

#include <algorithm>

#include "crypto/secret.h"

namespace sluice::cli::bench {
namespace {

// libsrtp starts once, and ends with the last of them: what is forked later may start it on its own.
std::mutex starting;
unsigned openers = 0;

}  // namespace

Expected<std::unique_ptr<LibsrtpOpener>> LibsrtpOpener::make(srtp::Suite suite) {
  const auto api = LibsrtpApi::load();
  if (!api) return tl::unexpected(api.error());
  const auto choose = api->suite(srtp::facts(suite).name);
  if (choose == nullptr) return make_error("libsrtp has not " + std::string(srtp::facts(suite).name));
  const std::lock_guard lock(starting);
  if (openers == 0 && api->init() != srtp_err_status_ok) return make_error("libsrtp does not start");
  ++openers;
  return std::unique_ptr<LibsrtpOpener>(new LibsrtpOpener(*api, choose));
}

LibsrtpOpener::~LibsrtpOpener() {
  for (const auto& [stream, session] : sessions_) api_.dealloc(session);
  const std::lock_guard lock(starting);
  if (--openers == 0) api_.shutdown();
}

Expected<srtp_t> LibsrtpOpener::session(std::uint32_t stream, const media::MasterKey& key) {
  if (const auto known = sessions_.find(stream); known != sessions_.end()) return known->second;
  crypto::Secret<media::MasterKey::capacity> bytes;
  std::copy(key.bytes().begin(), key.bytes().end(), bytes.bytes);
  srtp_policy_t policy = {};
  suite_(&policy.rtp);
  suite_(&policy.rtcp);
  policy.key = bytes.bytes;
  policy.ssrc.type = ssrc_any_inbound;
  policy.window_size = 1024;
  srtp_t session = nullptr;
  if (const auto status = api_.create(&session, &policy); status != srtp_err_status_ok) {
    return make_error("libsrtp refuses a session (" + std::to_string(status) + ")");
  }
  sessions_.emplace(stream, session);
  return session;
}

Expected<std::size_t> LibsrtpOpener::open(std::uint32_t stream, const media::MasterKey& key,
                                          std::span<std::uint8_t> packet) {
  const std::lock_guard lock(mutex_);
  const auto of = session(stream, key);
  if (!of) return tl::unexpected(of.error());
  auto length = static_cast<int>(packet.size());
  if (const auto status = api_.unprotect(*of, packet.data(), &length); status != srtp_err_status_ok) {
    return make_error(status == srtp_err_status_auth_fail ? "libsrtp finds the tag not right"
                                                          : "libsrtp refuses it (" + std::to_string(status) + ")");
  }
  return static_cast<std::size_t>(length);
}

}  // namespace sluice::cli::bench
