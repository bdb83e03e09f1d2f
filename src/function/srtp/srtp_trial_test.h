// For tests of the stage "srtp": frames through describe(), compute() and judge(), as a lane does it.
#pragma once

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/settings.h"
#include "engine/function.h"
#include "engine/port_table.h"
#include "function/srtp/srtp.h"
#include "packet/builder.h"

namespace sluice::function {

using packet::Bytes;
using packet::PacketBuilder;

// 30 bytes and 44 bytes, in base64.
inline const std::string key30 = "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz";
inline const std::string other_key30 = "d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj";

// A stream from 10.0.0.1:5004 to 10.0.0.2:6000, or of IPv6.
inline std::string stream_text(const std::string& action, const std::string& more = "", const std::string& key = key30,
                               const std::string& suite = "AES_CM_128_HMAC_SHA1_80", bool ipv6 = false) {
  return "[[srtp.stream]]\naction = \"" + action + "\"\nsource = \"" + (ipv6 ? "2001:db8::1" : "10.0.0.1") +
         "\"\nsource_port = 5004\ndestination = \"" + (ipv6 ? "2001:db8::2" : "10.0.0.2") +
         "\"\ndestination_port = 6000\ncrypto = \"1 " + suite + " inline:" + key + "\"\n" + more + "\n";
}

inline std::unique_ptr<engine::Stage> srtp_of(const std::string& text, std::vector<std::string>* mistakes = nullptr) {
  Diagnostics diagnostics;
  auto file = Settings::from_text(text, "a.toml", diagnostics);
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  if (!file) return nullptr;
  const engine::PortTable ports(
      {{.name = "lan", .mac = {}, .has_twin = true}, {.name = "wan", .mac = {}, .has_twin = true}});
  Settings section = file->section("srtp");
  auto stage = engine::find_function("srtp")->make_stage(section, ports);
  section.finish();
  if (mistakes != nullptr) {
    *mistakes = diagnostics.lines;
  } else {
    EXPECT_EQ(diagnostics.lines, std::vector<std::string>());
  }
  return stage ? std::move(*stage) : nullptr;
}

inline Bytes rtp(std::uint16_t sequence, std::size_t payload, std::uint32_t ssrc = 0x11223344) {
  Bytes bytes = {0x80,
                 96,
                 static_cast<std::uint8_t>(sequence >> 8),
                 static_cast<std::uint8_t>(sequence),
                 0,
                 0,
                 0,
                 9,
                 static_cast<std::uint8_t>(ssrc >> 24),
                 static_cast<std::uint8_t>(ssrc >> 16),
                 static_cast<std::uint8_t>(ssrc >> 8),
                 static_cast<std::uint8_t>(ssrc)};
  for (std::size_t i = 0; i < payload; ++i) bytes.push_back(static_cast<std::uint8_t>(i * 7 + sequence));
  return bytes;
}

inline Bytes rtcp(std::uint32_t ssrc = 0x11223344) {
  Bytes bytes = rtp(6, 16, ssrc);
  bytes[1] = 200;
  std::memmove(bytes.data() + 4, bytes.data() + 8, 4);
  return bytes;
}

inline PacketBuilder udp_frame(const Bytes& payload, bool ipv6 = false, std::uint16_t source_port = 5004,
                               std::uint16_t destination_port = 6000) {
  PacketBuilder builder;
  ipv6 ? builder.ipv6("2001:db8::1", "2001:db8::2") : builder.ipv4("10.0.0.1", "10.0.0.2");
  return builder.udp(source_port, destination_port).payload(payload);
}

struct Judged {
  packet::Reason reason = packet::no_reason;
  Bytes frame;
  std::string name() const { return std::string(reason == packet::no_reason ? "passes" : packet::reason_name(reason)); }
};

// A stage and one lane's batch.
class SrtpTrial {
 public:
  static constexpr std::uint32_t capacity = 64, buffer = 2048;

  explicit SrtpTrial(const std::string& text, std::uint32_t lanes = 1) : stage_(srtp_of(text)) {
    const auto ok = stage_->prepare({.lanes = lanes});
    EXPECT_TRUE(ok) << (ok ? "" : ok.error().message);
  }

  engine::Stage& stage() { return *stage_; }

  // `skipped`: a frame that a stage in front drops, so that this one is not asked about it.
  std::vector<Judged> run(const std::vector<Bytes>& frames, std::uint32_t lane = 0, std::size_t skipped = capacity) {
    const auto area_bytes = 64 + std::size_t{capacity} * stage_->bytes_per_frame();
    const std::unique_ptr<std::byte, decltype(&std::free)> area(
        static_cast<std::byte*>(std::aligned_alloc(64, (area_bytes + 63) / 64 * 64)), std::free);
    std::vector<Bytes> buffers;
    std::vector<rte_mbuf> mbufs(frames.size());
    std::vector<rte_mbuf*> pointers;
    std::vector<std::uint64_t> addresses;
    std::vector<std::uint16_t> lengths;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      buffers.push_back(frames[i]);
      buffers.back().resize(buffer, 0xEE);
      std::memset(&mbufs[i], 0, sizeof mbufs[i]);
      mbufs[i].buf_addr = buffers.back().data();
      mbufs[i].buf_len = buffer;
      mbufs[i].nb_segs = 1;
      mbufs[i].data_len = static_cast<std::uint16_t>(frames[i].size());
      mbufs[i].pkt_len = mbufs[i].data_len;
      pointers.push_back(&mbufs[i]);
      addresses.push_back(reinterpret_cast<std::uint64_t>(buffers.back().data()));
      lengths.push_back(mbufs[i].data_len);
    }
    engine::Batch batch;
    batch.frame = addresses.data();
    batch.length = lengths.data();
    batch.mbuf = pointers.data();
    batch.capacity = capacity;
    batch.lane = lane;
    // In two bursts.
    batch.count = static_cast<std::uint32_t>(frames.size() / 2);
    stage_->describe(batch, area.get(), 0);
    const std::uint32_t first = batch.count;
    batch.count = static_cast<std::uint32_t>(frames.size());
    if (first != batch.count && first != 0) stage_->describe(batch, area.get(), first);
    if (first == 0) stage_->describe(batch, area.get(), 0);
    stage_->compute(batch, area.get(), 0, first);
    stage_->compute(batch, area.get(), first, batch.count - first);
    std::vector<Judged> all(frames.size());
    for (std::uint32_t i = 0; i < batch.count; ++i) {
      if (i != skipped) all[i].reason = stage_->judge(batch, area.get(), i, 0);
      EXPECT_EQ(mbufs[i].data_len, lengths[i]);
      EXPECT_EQ(mbufs[i].pkt_len, lengths[i]);
      all[i].frame.assign(buffers[i].begin(), buffers[i].begin() + lengths[i]);
    }
    stage_->judged(batch, area.get());
    return all;
  }
  Judged one(const Bytes& frame, std::uint32_t lane = 0) { return run({frame}, lane).front(); }

  std::uint64_t figure(std::string_view name) const {
    for (const engine::Figure& figure : stage_->figures()) {
      if (figure.name == name) return figure.value;
    }
    ADD_FAILURE() << name;
    return 0;
  }

 private:
  std::unique_ptr<engine::Stage> stage_;
};

}  // namespace sluice::function
