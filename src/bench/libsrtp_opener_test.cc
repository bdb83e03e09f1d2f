// That libsrtp opens what a channel has sealed, and nothing else.
#include "bench/libsrtp_opener.h"

#include <gtest/gtest.h>

#include <vector>

#include "crypto/cpu.h"
#include "media/srtp/channel.h"

namespace sluice::cli::bench {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST(LibsrtpOpener, OpensWhatAChannelHasSealed) {
  auto keys = crypto::KeyTable::make(4, true);
  auto pool = srtp::StreamPool::make(8, 128);
  auto cpu = crypto::Cpu::make();
  ASSERT_TRUE(keys && pool && cpu);
  for (const srtp::SuiteFacts& suite : srtp::suites) {
    SCOPED_TRACE(suite.name);
    const Bytes secret(suite.key_and_salt_length(), 7);
    const srtp::MasterKey master{.key = std::span(secret).first(suite.key_length),
                                 .salt = std::span(secret).subspan(suite.key_length)};
    const auto named = srtp::suite_named(suite.name);
    auto channel = srtp::Channel::make({.suite = *named}, {&master, 1}, *keys, *pool);
    ASSERT_TRUE(channel);
    auto opener = LibsrtpOpener::make(*named);
    ASSERT_TRUE(opener) << opener.error().message;
    for (std::uint8_t sequence = 0; sequence < 4; ++sequence) {
      Bytes clear(112, 9);
      std::fill_n(clear.begin(), 12, 0);
      clear[0] = 0x80;
      clear[3] = sequence;
      Bytes packet = clear;
      packet.resize(clear.size() + 32);
      crypto::Job job;
      srtp::Pending pending;
      crypto::Verdict verdict{};
      ASSERT_EQ(channel->prepare({packet.data(), 112, 144}, job, pending), srtp::Status::ok);
      cpu->run(*keys, {&job, 1}, {&verdict, 1});
      ASSERT_EQ(channel->finish(pending, verdict), srtp::Status::ok);
      packet.resize(pending.length);
      Bytes wrong = packet;
      wrong[20] ^= 1;
      const auto refused = (*opener)->open(1, media::MasterKey(secret), wrong);
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().message, "libsrtp finds the tag not right");
      const auto length = (*opener)->open(1, media::MasterKey(secret), packet);
      ASSERT_TRUE(length) << length.error().message;
      packet.resize(*length);
      EXPECT_EQ(packet, clear);
      EXPECT_FALSE((*opener)->open(1, media::MasterKey(secret), packet)) << "in clear";
    }
    channel->end_streams();
  }
}

}  // namespace
}  // namespace sluice::cli::bench
