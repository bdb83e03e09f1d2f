// It accepts what libsrtp has sealed, and nothing that is not so.
#include "bench/sealed_check.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/libsrtp_api.h"

namespace sluice::cli::bench {
namespace {

using Bytes = std::vector<std::uint8_t>;

// An RTP packet, sealed by libsrtp.
Bytes sealed_by_libsrtp(const LibsrtpApi& api, const srtp::SuiteFacts& suite, Bytes key, Bytes packet) {
  srtp_policy_t policy = {};
  api.suite(suite.name)(&policy.rtp);
  api.suite(suite.name)(&policy.rtcp);
  policy.key = key.data();
  policy.ssrc.type = ssrc_any_outbound;
  policy.window_size = 128;
  srtp_t session = nullptr;
  EXPECT_EQ(api.create(&session, &policy), srtp_err_status_ok);
  auto length = static_cast<int>(packet.size());
  packet.resize(packet.size() + 64);
  EXPECT_EQ(api.protect(session, packet.data(), &length), srtp_err_status_ok);
  api.dealloc(session);
  packet.resize(static_cast<std::size_t>(length));
  return packet;
}

TEST(SealedCheck, TakesWhatLibsrtpHasSealedAndNothingElse) {
  const auto api = LibsrtpApi::load();
  ASSERT_TRUE(api) << api.error().message;
  ASSERT_EQ(api->init(), srtp_err_status_ok);
  Bytes clear(100, 9);
  std::fill_n(clear.begin(), 12, 0);
  clear[0] = 0x80;
  for (const srtp::SuiteFacts& suite : srtp::suites) {
    SCOPED_TRACE(suite.name);
    Bytes key(suite.key_and_salt_length(), 7);
    const Bytes sealed = sealed_by_libsrtp(*api, suite, key, clear);
    const auto ok = check_sealed(suite.suite, key, sealed, clear);
    EXPECT_TRUE(ok) << ok.error().message;
    Bytes wrong = sealed;
    wrong[20] ^= 1;
    EXPECT_EQ(check_sealed(suite.suite, key, wrong, clear).error().message, "NOT VERIFIED: a tag is not right");
    EXPECT_EQ(check_sealed(suite.suite, key, clear, clear).error().message, "NOT VERIFIED: a tag is not right");
    Bytes other = clear;
    other[50] ^= 1;
    EXPECT_EQ(check_sealed(suite.suite, key, sealed, other).error().message,
              "NOT VERIFIED: what was sealed is not what there was");
    EXPECT_EQ(check_sealed(suite.suite, key, Bytes(5, 0x80), clear).error().message,
              "NOT VERIFIED: what was sealed is no SRTP");
  }
  api->shutdown();
}

}  // namespace
}  // namespace sluice::cli::bench
