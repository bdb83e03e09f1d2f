#include "bench/sealed_check.h"

#include <algorithm>
#include <vector>

#include "crypto/cpu.h"
#include "crypto/key_table.h"
#include "media/srtp/channel.h"

namespace sluice::cli::bench {

Expected<void> check_sealed(srtp::Suite suite, std::span<const std::uint8_t> key, std::span<const std::uint8_t> sealed,
                            std::span<const std::uint8_t> clear) {
  const srtp::SuiteFacts& facts = srtp::facts(suite);
  const srtp::MasterKey master{.key = key.first(facts.key_length),
                               .salt = key.subspan(facts.key_length, facts.salt_length)};
  auto keys = crypto::KeyTable::make(1, facts.gcm());
  auto pool = srtp::StreamPool::make(1, 128);
  auto cpu = crypto::Cpu::make();
  if (!keys) return tl::unexpected(keys.error());
  if (!pool) return tl::unexpected(pool.error());
  if (!cpu) return tl::unexpected(cpu.error());
  auto channel = srtp::Channel::make({.suite = suite, .direction = srtp::Direction::unprotect, .max_streams = 1},
                                     {&master, 1}, *keys, *pool);
  if (!channel) return tl::unexpected(channel.error());
  std::vector<std::uint8_t> packet(sealed.begin(), sealed.end());
  const auto length = static_cast<std::uint32_t>(packet.size());
  crypto::Job job;
  srtp::Pending pending;
  crypto::Verdict verdict{};
  if (channel->prepare({packet.data(), length, length}, job, pending) != srtp::Status::ok) {
    return make_error("NOT VERIFIED: what was sealed is no SRTP");
  }
  cpu->run(*keys, {&job, 1}, {&verdict, 1});
  if (channel->finish(pending, verdict) != srtp::Status::ok) return make_error("NOT VERIFIED: a tag is not right");
  packet.resize(pending.length);
  if (!std::ranges::equal(packet, clear)) return make_error("NOT VERIFIED: what was sealed is not what there was");
  return {};
}

}  // namespace sluice::cli::bench
