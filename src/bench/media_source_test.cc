// What the source of `bench media` hands to a chain, and that its check sees what is wrong.
#include "bench/media_source.h"

#include <gtest/gtest.h>

#include <atomic>

#include "bench/verify.h"
#include "engine/wrapped_element.h"
#include "function/srtp/srtp.h"

namespace sluice::cli::bench {
namespace {

enum class Spoils { nothing, payload, tag, checksum };

// Around the element: spoils every hundredth frame behind its cryptography.
class Spoiler final : public engine::WrappedElement {
 public:
  Spoiler(std::unique_ptr<engine::Element> inner, Spoils what) : WrappedElement(std::move(inner)), what_(what) {}
  void compute(engine::Batch& batch, engine::Span span) override {
    WrappedElement::compute(batch, span);
    for (std::uint32_t i = span.first; i < span.end(); ++i) spoil(batch, i);
  }

 private:
  void spoil(const engine::Batch& batch, std::uint32_t i) {
    if (++frames_ % 100 != 0) return;
    auto* const frame = reinterpret_cast<std::uint8_t*>(batch.frame[i]);
    switch (what_) {
      case Spoils::payload:
        frame[80] ^= 1;
        break;
      case Spoils::tag:
        frame[batch.length[i]] ^= 1;
        break;
      case Spoils::checksum:  // of IPv4: that of UDP is computed behind this
        frame[24] ^= 1;
        break;
      case Spoils::nothing:
        break;
    }
  }
  const Spoils what_;
  std::atomic<std::uint64_t> frames_{0};
};

struct Case {
  const char* suite;
  bool both, checksums;
  Spoils spoils;
  const char* wrong;  // a part of what check() says
};

class MediaSourceTest : public testing::Test {
 protected:
  // Frames of the mix through srtp and bridge on a core: what check() has found.
  static std::string run(const Case& one, std::uint64_t& opened, std::uint64_t& dropped) {
    RtpStreams streams;
    streams.lanes = 2;
    streams.frames = 512;
    streams.streams = 30;
    streams.suite = srtp::suite_named(one.suite).value();
    streams.both = one.both;
    streams.checksums = one.checksums;
    MediaSource* source = nullptr;
    RigOptions options;
    options.function = "bridge";
    options.mix = "rtp";
    options.lanes = streams.lanes;
    options.frames = streams.frames;
    options.engine.device = "cpu";
    options.engine.deadline = std::chrono::milliseconds(20);
    options.engine.admission = engine::Admit::all;
    options.engine.batches = 2;
    options.engine.batch = 128;
    options.elements = {{"srtp", [&](const engine::PortTable&) {
                           function::Srtp::SrtpOptions srtp;
                           srtp.streams = streams.settings();
                           srtp.max_keys = streams.keys();
                           return std::make_unique<Spoiler>(std::make_unique<function::Srtp>(std::move(srtp)),
                                                            one.spoils);
                         }}};
    options.in_front.emplace_back([&] {
      auto made = std::make_unique<MediaSource>(streams);
      source = made.get();
      return made;
    });
    auto rig = Rig::make(options);
    EXPECT_TRUE(rig) << (rig ? "" : rig.error().message);
    if (!rig) return "no rig";
    EXPECT_TRUE(source->check((*rig)->replay()));
    const auto ran = run_until(**rig, source->checked, 30'000);
    EXPECT_TRUE(ran) << (ran ? "" : ran.error().message);
    opened = source->opened;
    // Each eighth of a lane's 15 streams, of what leaves protected.
    EXPECT_EQ(source->why_no_libsrtp(), "");
    if (one.spoils == Spoils::nothing) {
      const std::uint64_t sealed = source->checked - opened;
      EXPECT_GT(source->opened_by_libsrtp, sealed / 10);
      EXPECT_LT(source->opened_by_libsrtp, sealed / 5);
    }
    const engine::EngineStats stats = (*rig)->engine().stats();
    dropped = stats.total.dropped - stats.drops[engine::stopped];
    return source->wrong();
  }
};

TEST_F(MediaSourceTest, EveryPacketIsNewAndRight) {
  for (const Case& one : {Case{"AES_CM_128_HMAC_SHA1_80", false, true, Spoils::nothing, ""},
                          Case{"AES_CM_128_HMAC_SHA1_32", true, true, Spoils::nothing, ""},
                          Case{"AEAD_AES_256_GCM", true, false, Spoils::nothing, ""},
                          Case{"AEAD_AES_128_GCM", false, true, Spoils::nothing, ""}}) {
    SCOPED_TRACE(one.suite);
    std::uint64_t opened = 0, dropped = 0;
    EXPECT_EQ(run(one, opened, dropped), "");
    EXPECT_EQ(dropped, 0U);
    EXPECT_EQ(opened > 10'000, one.both);
  }
}

TEST_F(MediaSourceTest, WhatIsWrongIsSeen) {
  for (const Case& one : {Case{"AES_CM_128_HMAC_SHA1_80", false, true, Spoils::payload, "tag that left is not right"},
                          Case{"AES_CM_128_HMAC_SHA1_80", false, true, Spoils::tag, "tag that left is not right"},
                          Case{"AEAD_AES_128_GCM", false, false, Spoils::checksum, "wrong IPv4 checksum"}}) {
    SCOPED_TRACE(one.wrong);
    std::uint64_t opened = 0, dropped = 0;
    EXPECT_NE(run(one, opened, dropped).find(one.wrong), std::string::npos);
  }
}

}  // namespace
}  // namespace sluice::cli::bench
