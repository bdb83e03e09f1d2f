// How long streams and their keys live: what lanes hold while others come and go, and what is left of master keys.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <random>
#include <set>
#include <span>
#include <thread>

#include "function/srtp/streams.h"
#include "function/srtp/streams_trial_test.h"

namespace sluice::function {
namespace {

using Clock = std::chrono::steady_clock;

// A batch that has found a stream finishes with it, though it has been removed meanwhile and its place given away.
TEST(Streams, LiveAsLongAsABatchThatFoundThem) {
  auto keys = crypto::KeyTable::make(4, false);
  Streams::Current current(2);
  const engine::PortTable ports;
  Streams streams(*keys, current, 8, 1514, ports, nullptr, *SpentKeys::make());
  ASSERT_TRUE(streams.add(settings_of(7000)));
  const MediaStreamTable* const early = current.pin(0);
  MediaStream* const found = early->find(key_of(7000));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(keys->used(), 2U);
  EXPECT_EQ(streams.remove(std::vector{key_of(7000)}, MediaOrigin::rtsp, false), 1U);
  streams.tidy(Clock::now());
  const MediaStreamTable* const late = current.pin(1);
  ASSERT_TRUE(streams.add(settings_of(7000)));
  EXPECT_EQ(streams.remove(std::vector{key_of(7000)}, MediaOrigin::rtsp, false), 1U);
  streams.tidy(Clock::now());
  EXPECT_EQ(keys->used(), 4U) << "both are held";
  EXPECT_EQ(found->settings().name, "10.0.0.1:5004 -> 10.0.0.2:7000");
  (void)late;
  current.unpin(1);
  streams.tidy(Clock::now());
  EXPECT_EQ(keys->used(), 4U) << "the older reader may have found the younger stream";
  current.unpin(0);
  streams.tidy(Clock::now());
  EXPECT_EQ(keys->used(), 0U);
}

// What another part of the chain has refused ends on the thread of the reload, and RTSP's threads do not wait for it.
TEST(Streams, AReloadThatComesToNothingGivesItsKeysBackBesideOthers) {
  constexpr unsigned rounds = 3'000;
  auto keys = crypto::KeyTable::make(16, false);
  Streams::Current current(1);
  const engine::PortTable ports;
  Streams streams(*keys, current, 32, 1514, ports, nullptr, *SpentKeys::make());
  auto configured = settings_of(6000);
  configured[0].origin = MediaOrigin::configuration;
  std::atomic<unsigned> refused{0};
  std::thread reloads([&] {
    for (unsigned i = 0; i < rounds; ++i) refused += streams.prepare(configured) ? 0 : 1;
  });
  for (unsigned i = 0; i < rounds; ++i) {
    refused += streams.add(settings_of(7000)) ? 0 : 1;
    streams.remove(std::vector{key_of(7000)}, MediaOrigin::rtsp, false);
    streams.tidy(Clock::now());
  }
  reloads.join();
  streams.tidy(Clock::now());
  EXPECT_EQ(refused, 0U) << "there was capacity for the keys";
  EXPECT_EQ(keys->used(), 0U);
  std::set<std::uint32_t> slots;
  for (unsigned i = 0; i < 16; ++i) {
    const std::vector<std::uint8_t> bytes(20, 1);
    const std::span<const std::uint8_t> all(bytes);
    const auto slot =
        keys->install({crypto::Cipher::aes_ctr, crypto::Hash::hmac_sha1, all.first(16), all.first(14), all, 10});
    ASSERT_TRUE(slot) << i;
    slots.insert(*slot);
  }
  EXPECT_EQ(slots.size(), 16U) << "each is there once";
}

// A batch that was begun before the slots were made anew does not see what is put into the new ones.
TEST(Streams, ThatAreAddedAreSeenByEveryBatchBeforeTheAnswer) {
  auto keys = crypto::KeyTable::make(4, false);
  Streams::Current current(3);
  const engine::PortTable ports;
  Streams streams(*keys, current, 8, 1514, ports, nullptr, *SpentKeys::make());
  const MediaStreamTable* const begun = current.pin(0);
  const auto made_anew = [&](std::size_t reader) { return current.read(reader).operator->() != begun; };
  std::atomic<bool> ended{false}, given_up{false};
  std::thread lane([&] {
    while (!made_anew(1) && !given_up) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ended = true;
    current.unpin(0);
  });
  std::mt19937 random(7);
  bool anew = false;
  for (unsigned step = 0; !anew && step < 100'000; ++step) {
    const unsigned port = 7000 + random() % 100;
    const bool added = streams.add(settings_of(port, Keyless::passes_rtcp)).has_value();
    anew = made_anew(2);
    if (anew || !added) streams.remove(std::vector{key_of(port)}, MediaOrigin::rtsp, false);
  }
  EXPECT_TRUE(anew);
  EXPECT_TRUE(ended) << "a batch under way would let the last one pass as it comes";
  given_up = true;
  lane.join();
}

// Where RTCP has ports of its own, RTP there is no RTCP in clear.
TEST(Streams, WithoutAKeyKnowRtcpByItsType) {
  SrtpTrial trial("");
  MediaStreams& streams = streams_of(trial);
  const struct {
    Keyless keyless;
    std::string rtp, rtcp;
  } cases[] = {{Keyless::passes_rtcp, "srtp_not_media", "passes"},
               {Keyless::drops_rtcp, "srtp_not_media", "srtp_clear_rtcp"},
               {Keyless::passes, "passes", "passes"}};
  std::uint16_t port = 7000;
  for (const auto& one : cases) {
    for (const Carries carries : {Carries::both, Carries::rtcp}) {
      auto settings = settings_of(++port, one.keyless);
      settings[0].carries = carries;
      ASSERT_TRUE(streams.add(settings));
      EXPECT_EQ(trial.one(frame_to(port, 1)).name(), one.rtp) << port;
      EXPECT_EQ(trial.one(udp_frame(rtcp(), false, 5004, port).build()).name(), one.rtcp) << port;
    }
  }
}

// The tables have what session keys need, and nothing else has any of it.
TEST(Streams, KeepNoMasterKey) {
  auto keys = crypto::KeyTable::make(8, false);
  Streams::Current current(1);
  const engine::PortTable ports;
  Streams streams(*keys, current, 8, 1514, ports, nullptr, *SpentKeys::make());
  ASSERT_TRUE(streams.add(settings_of(7000)));
  ASSERT_TRUE(streams.add_text(text_of(7001), "the request"));
  auto configured = settings_of(7002);
  configured[0].origin = MediaOrigin::configuration;
  const auto replacement = streams.prepare(configured);
  ASSERT_TRUE(replacement);
  streams.commit(*replacement);
  const auto table = current.read(0);
  for (const unsigned port : {7000U, 7001U, 7002U}) {
    const auto& crypto = table->find(key_of(port))->settings().crypto;
    ASSERT_EQ(crypto.keys.size(), 1U);
    EXPECT_TRUE(crypto.keys[0].key.empty()) << port;
  }
}

#ifndef SLUICE_SANITIZED
// The master key's bytes in what malloc() has from the kernel; they are not there as a whole in this test.
std::size_t copies_in_heap(const std::string& key) {
  constexpr std::size_t length = 16;
  std::array<std::uint8_t, length> inverted;
  {
    const auto bytes = media::base64_decode(key);
    for (std::size_t i = 0; i < length; ++i) inverted[i] = static_cast<std::uint8_t>(~(*bytes)[i]);
  }
  std::ifstream maps("/proc/self/maps");
  std::size_t found = 0;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (!line.ends_with("[heap]") || std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2) continue;
    const std::span<const std::uint8_t> heap(reinterpret_cast<const std::uint8_t*>(begin), end - begin);
    const auto same = [](std::uint8_t one, std::uint8_t other) { return one == static_cast<std::uint8_t>(~other); };
    for (auto at = heap.begin();; ++at, ++found) {
      at = std::search(at, heap.end(), inverted.begin(), inverted.end(), same);
      if (at == heap.end()) break;
    }
  }
  return found;
}

TEST(Streams, OfTheFileLeaveNoMasterKeyInMemory) {
  SrtpTrial trial(stream_text("protect") + "[[srtp.stream]]\n" + text_of(7000, "unprotect"));
  ASSERT_EQ(trial.one(frame_to(6000, 1)).name(), "passes");
  EXPECT_EQ(copies_in_heap(key30), 0U);
  ASSERT_TRUE(streams_of(trial).add_text(text_of(7001, "protect", other_key30), "the request"));
  EXPECT_EQ(copies_in_heap(other_key30), 0U);
}
#endif

TEST(Streams, LanesReadWhileStreamsComeAndGo) {
  auto keys = crypto::KeyTable::make(64, false);
  constexpr unsigned readers = 2;
  Streams::Current current(readers);
  const engine::PortTable ports;
  Streams streams(*keys, current, 64, 1514, ports, nullptr, *SpentKeys::make());
  ASSERT_TRUE(streams.add(settings_of(1)));  // always there
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> seen{0}, lost{0};
  std::vector<std::thread> threads;
  for (unsigned reader = 0; reader < readers; ++reader) {
    threads.emplace_back([&, reader] {
      std::vector<MediaKey> asked;
      for (unsigned port = 1; port < 20; ++port) asked.push_back(key_of(port));
      while (!over) {
        const auto table = current.read(reader);
        if (table->find(asked[0]) == nullptr || !table->may_concern(asked[0])) ++lost;
        for (const MediaKey& key : asked) {
          MediaStream* const stream = table->find(key);
          if (stream == nullptr) continue;
          ++seen;
          if (!(stream->settings().key == key)) ++lost;
          stream->note();
        }
      }
    });
  }
  std::mt19937 random(7);
  for (unsigned step = 0; step < 3000; ++step) {
    const unsigned port = 2 + random() % 18;
    if (!streams.add(settings_of(port, Keyless::passes_rtcp))) {
      streams.remove(std::vector{key_of(port)}, MediaOrigin::rtsp, step % 2 == 0);
    }
    if (step % 8 == 0) streams.tidy(Clock::now() + std::chrono::seconds(step));
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lost, 0U);
  EXPECT_GT(seen, 0U);
}

}  // namespace
}  // namespace sluice::function
