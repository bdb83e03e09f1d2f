// Against libsrtp2, both ways and byte for byte. Every suite is tried, with loss, reordering, repetition, wrapping
// sequences, several SSRCs and MKI. libsrtp counts SRTCP from 1, a channel from 0 (RFC 3711 section 3.4), so a channel
// that is compared byte for byte has sent one more.
#include <gtest/gtest.h>
#include <srtp2/srtp.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "media/srtp/channel_trial_test.h"

namespace sluice::srtp {
namespace {

using test::Bytes;

constexpr std::uint32_t known_ssrcs[] = {0xcafebabe, 1, 0xffffffff};

srtp_profile_t profile_of(Suite suite) {
  switch (suite) {
    case Suite::aead_aes_128_gcm:
      return srtp_profile_aead_aes_128_gcm;
    case Suite::aead_aes_256_gcm:
      return srtp_profile_aead_aes_256_gcm;
    default:
      return srtp_profile_reserved;
  }
}

// libsrtp looks for SRTCP's MKI by the length of SRTP's tag, so its _32 finds none: what is tested with SRTCP is the
// same with _80, whose keys and SRTCP tags are _32's.
Suite for_libsrtp(Suite suite, Protocol protocol) {
  if (protocol == Protocol::rtcp && suite == Suite::aes_cm_128_hmac_sha1_32) {
    return Suite::aes_cm_128_hmac_sha1_80;
  }
  if (protocol == Protocol::rtcp && suite == Suite::aes_256_cm_hmac_sha1_32) {
    return Suite::aes_256_cm_hmac_sha1_80;
  }
  return suite;
}

void set_policy(Suite suite, srtp_policy_t& policy) {
  switch (suite) {
    case Suite::aes_cm_128_hmac_sha1_80:
      srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(&policy.rtp);
      srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(&policy.rtcp);
      break;
    case Suite::aes_cm_128_hmac_sha1_32:
      srtp_crypto_policy_set_aes_cm_128_hmac_sha1_32(&policy.rtp);
      srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(&policy.rtcp);
      break;
    case Suite::aes_256_cm_hmac_sha1_80:
      srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80(&policy.rtp);
      srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80(&policy.rtcp);
      break;
    case Suite::aes_256_cm_hmac_sha1_32:
      srtp_crypto_policy_set_aes_cm_256_hmac_sha1_32(&policy.rtp);
      srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80(&policy.rtcp);
      break;
    default:
      srtp_crypto_policy_set_from_profile_for_rtp(&policy.rtp, profile_of(suite));
      srtp_crypto_policy_set_from_profile_for_rtcp(&policy.rtcp, profile_of(suite));
  }
}

class LibSrtp {
 public:
  LibSrtp(Suite suite, Protocol protocol, const test::Secrets& secrets, Direction direction)
      : with_mki_(!secrets.mki.empty()) {
    static const srtp_err_status_t started = srtp_init();
    EXPECT_EQ(started, srtp_err_status_ok);
    srtp_policy_t policy = {};
    set_policy(for_libsrtp(suite, protocol), policy);
    key_ = secrets.key;
    key_.insert(key_.end(), secrets.salt.begin(), secrets.salt.end());
    mki_ = secrets.mki;
    srtp_master_key_t master = {key_.data(), mki_.data(), static_cast<unsigned>(mki_.size())};
    srtp_master_key_t* masters[] = {&master};
    if (with_mki_) {
      policy.keys = masters;
      policy.num_master_keys = 1;
    } else {
      policy.key = key_.data();
    }
    policy.ssrc.type = direction == Direction::protect ? ssrc_any_outbound : ssrc_any_inbound;
    policy.window_size = 128;
    EXPECT_EQ(srtp_create(&session_, &policy), srtp_err_status_ok);
  }
  LibSrtp(const LibSrtp&) = delete;
  LibSrtp& operator=(const LibSrtp&) = delete;
  ~LibSrtp() { srtp_dealloc(session_); }

  srtp_err_status_t protect(Protocol protocol, Bytes& packet) {
    auto length = static_cast<int>(packet.size());
    packet.resize(packet.size() + SRTP_MAX_TRAILER_LEN + 8);
    const srtp_err_status_t status = protocol == Protocol::rtp
                                         ? srtp_protect_mki(session_, packet.data(), &length, with_mki_, 0)
                                         : srtp_protect_rtcp_mki(session_, packet.data(), &length, with_mki_, 0);
    packet.resize(static_cast<std::size_t>(length));
    return status;
  }
  srtp_err_status_t unprotect(Protocol protocol, Bytes& packet) {
    auto length = static_cast<int>(packet.size());
    const srtp_err_status_t status = protocol == Protocol::rtp
                                         ? srtp_unprotect_mki(session_, packet.data(), &length, with_mki_)
                                         : srtp_unprotect_rtcp_mki(session_, packet.data(), &length, with_mki_);
    packet.resize(static_cast<std::size_t>(length));
    return status;
  }

 private:
  srtp_t session_ = nullptr;
  Bytes key_, mki_;
  bool with_mki_;
};

Status as_status(srtp_err_status_t status) {
  switch (status) {
    case srtp_err_status_ok:
      return Status::ok;
    case srtp_err_status_auth_fail:
    case srtp_err_status_cant_check:  // SRTCP's E falsified, which it has a policy for
      return Status::auth_failed;
    case srtp_err_status_replay_fail:
      return Status::replayed;
    case srtp_err_status_replay_old:
      return Status::too_old;
    default:
      ADD_FAILURE() << "libsrtp says " << status;
      return Status::no_key;
  }
}

// A source of packets whose sequence numbers go on by steps, wrap, come late and come twice.
class Source {
 public:
  explicit Source(std::uint32_t seed) : random(seed) {
    for (auto& sequence : sequences_) {
      sequence = random() & 0x7fff;  // as RFC 3711 section 3.3.1 has it
    }
  }

  Bytes next(Protocol protocol) {
    const std::size_t which = random() % std::size(known_ssrcs);
    const Bytes payload = test::random_bytes(random, random() % 8 == 0 ? random() % 4 : random() % 1400);
    if (protocol == Protocol::rtcp) {
      return test::rtcp_packet(known_ssrcs[which], payload);
    }
    std::uint32_t& highest = sequences_[which];
    std::uint32_t sequence = 0;
    switch (random() % 16) {
      case 0:
        sequence = highest += 1 + random() % 20000;
        break;
      case 1:
        sequence = highest - random() % 300;  // late, perhaps too late, perhaps again
        break;
      default:
        sequence = highest += 1 + random() % 3;
    }
    Bytes packet = test::rtp_packet(known_ssrcs[which], sequence, payload);
    if (random() % 4 == 0) {
      packet[0] |= 0x11;
      const Bytes more = {0, 0, 0, 1, 0xbe, 0xde, 0, 1, 9, 9, 9, 9};
      packet.insert(packet.begin() + 12, more.begin(), more.end());
    }
    return packet;
  }

  std::mt19937 random;

 private:
  std::uint32_t sequences_[std::size(known_ssrcs)];
};

struct WithLibSrtp : testing::TestWithParam<std::tuple<Suite, Protocol, std::size_t>> {
  WithLibSrtp()
      : suite(std::get<0>(GetParam())),
        protocol(std::get<1>(GetParam())),
        source(static_cast<std::uint32_t>(suite) * 100 + static_cast<std::uint32_t>(std::get<2>(GetParam()))),
        secrets(source.random, suite, std::get<2>(GetParam())) {}

  Channel channel(Direction direction) {
    const MasterKey master = secrets.view();
    auto made = Channel::make({.suite = suite, .protocol = protocol, .direction = direction}, {&master, 1}, lane.keys,
                              lane.pool);
    EXPECT_TRUE(made);
    return std::move(*made);
  }

  Suite suite;
  Protocol protocol;
  Source source;
  test::Secrets secrets;
  test::Lane lane;
};

TEST_P(WithLibSrtp, ProtectsToTheSameBytes) {
  Channel ours = channel(Direction::protect);
  LibSrtp theirs(suite, protocol, secrets, Direction::protect);
  if (protocol == Protocol::rtcp) {
    for (const std::uint32_t ssrc : known_ssrcs) {
      Bytes first = test::rtcp_packet(ssrc, {});
      ASSERT_EQ(test::pass(lane, ours, first), Status::ok);
    }
  }
  unsigned protected_ones = 0;
  for (int i = 0; i < 700; ++i) {
    const Bytes plain = source.next(protocol);
    Bytes a = plain;
    Bytes b = plain;
    const Status status = test::pass(lane, ours, a);
    ASSERT_EQ(status, as_status(theirs.protect(protocol, b))) << i;
    if (status == Status::ok) {
      ASSERT_EQ(a, b) << i;
      ++protected_ones;
    }
  }
  EXPECT_GT(protected_ones, 500U);
}

TEST_P(WithLibSrtp, ItUnprotectsWhatWeProtect) {
  Channel ours = channel(Direction::protect);
  LibSrtp theirs(suite, protocol, secrets, Direction::unprotect);
  for (int i = 0; i < 700; ++i) {
    const Bytes plain = source.next(protocol);
    Bytes packet = plain;
    if (test::pass(lane, ours, packet) != Status::ok) {
      continue;
    }
    ASSERT_EQ(theirs.unprotect(protocol, packet), srtp_err_status_ok) << i;
    ASSERT_EQ(packet, plain) << i;
  }
}

// With packets lost, delayed, repeated and falsified on the way, many of ours in flight: the same verdict on each, and
// the same bytes.
TEST_P(WithLibSrtp, UnprotectsAsItDoes) {
  LibSrtp sender(suite, protocol, secrets, Direction::protect);
  LibSrtp theirs(suite, protocol, secrets, Direction::unprotect);
  Channel ours = channel(Direction::unprotect);
  std::mt19937& random = source.random;
  std::vector<Bytes> late;
  unsigned counts[status_count] = {};
  for (int i = 0; i < 1600; ++i) {
    Bytes packet = source.next(protocol);
    if (sender.protect(protocol, packet) != srtp_err_status_ok || random() % 20 == 0) {
      continue;  // refused, or lost
    }
    if (random() % 4 == 0) {
      late.push_back(packet);
    }
    if (late.size() > 20 && random() % 2 == 0) {
      std::swap(packet, late[random() % late.size()]);  // an old one now, this one later, and perhaps again
    }
    if (random() % 10 == 0) {
      packet[(protocol == Protocol::rtp ? 12 : 8) + random() % (packet.size() - 12)] ^= 1U << random() % 8;
    }
    Bytes a = packet;
    Bytes b = packet;
    const Status status = test::pass(lane, ours, a);
    const srtp_err_status_t verdict = theirs.unprotect(protocol, b);
    if (status == Status::no_key || (status == Status::bad_header && verdict != srtp_err_status_ok)) {
      ASSERT_NE(verdict, srtp_err_status_ok);  // the falsified byte was the MKI's
      continue;
    }
    ASSERT_EQ(status, as_status(verdict)) << i;
    ++counts[static_cast<unsigned>(status)];
    if (status == Status::ok) {
      ASSERT_EQ(a, b) << i;
    }
  }
  EXPECT_GT(counts[static_cast<unsigned>(Status::ok)], 500U);
  EXPECT_GT(counts[static_cast<unsigned>(Status::auth_failed)], 50U);
  EXPECT_GT(counts[static_cast<unsigned>(Status::replayed)], 5U);
  EXPECT_GT(counts[static_cast<unsigned>(Status::too_old)], 5U);
}

INSTANTIATE_TEST_SUITE_P(
    Suites, WithLibSrtp,
    testing::Combine(testing::Values(Suite::aes_cm_128_hmac_sha1_80, Suite::aes_cm_128_hmac_sha1_32,
                                     Suite::aes_256_cm_hmac_sha1_80, Suite::aes_256_cm_hmac_sha1_32,
                                     Suite::aead_aes_128_gcm, Suite::aead_aes_256_gcm),
                     testing::Values(Protocol::rtp, Protocol::rtcp), testing::Values(0, 4)),
    [](const auto& info) {
      return std::string(facts(std::get<0>(info.param)).name) +
             (std::get<1>(info.param) == Protocol::rtp ? "_RTP" : "_RTCP") +
             (std::get<2>(info.param) != 0 ? "_MKI" : "");
    });

}  // namespace
}  // namespace sluice::srtp
