// ESP packets as jobs in pinned memory, for gpu_jobs_bench.cc: a frame every 2,048 bytes, of one algorithm or of
// several at random, with batches in an order of every grouping.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "crypto/algorithm.h"
#include "crypto/cpu.h"
#include "crypto/gpu_crypto.h"
#include "crypto/key_table.h"
#include "device/gpu.h"
#include "device/warp_schedule.h"
#include "device/warp_times.h"
#include "packet/frame_mix.h"

namespace sluice::crypto {

// What a tunnel's key is of.
struct EspSuite {
  const char* name;
  Cipher cipher;
  Hash hash;
  std::size_t key_length, tag_length;
};
inline constexpr EspSuite esp_suites[] = {
    {"aes128_cbc_sha1", Cipher::aes_cbc, Hash::hmac_sha1, 16, 12},
    {"aes256_cbc_sha1", Cipher::aes_cbc, Hash::hmac_sha1, 32, 12},
    {"aes128_cbc_sha256", Cipher::aes_cbc, Hash::hmac_sha256, 16, 16},
    {"aes256_cbc_sha384", Cipher::aes_cbc, Hash::hmac_sha384, 32, 24},
    {"aes256_cbc_sha512", Cipher::aes_cbc, Hash::hmac_sha512, 32, 32},
    {"aes128_ctr_sha1", Cipher::aes_ctr_esp, Hash::hmac_sha1, 16, 12},
    {"aes256_ctr_sha256", Cipher::aes_ctr_esp, Hash::hmac_sha256, 32, 16},
    {"aes128_gcm", Cipher::aes_gcm_esp, Hash::none, 16, 16},
    {"aes256_gcm", Cipher::aes_gcm_esp, Hash::none, 32, 16},
    {"null_sha256", Cipher::null, Hash::hmac_sha256, 0, 16},
};

// Lengths of frames as they come, without FCS: what FrameMix knows, or "uniform", from 64 to 1,518.
class FrameLengths {
 public:
  static Expected<FrameLengths> make(const std::string& name) {
    FrameLengths lengths;
    if (name == "uniform") return lengths;
    auto mix = packet::FrameMix::make(name);
    if (!mix) return tl::unexpected(mix.error());
    lengths.mix_.push_back(std::move(*mix));
    return lengths;
  }
  std::uint32_t next() {
    return mix_.empty() ? 64 + static_cast<std::uint32_t>(random_() % 1455) : mix_.front().next();
  }

 private:
  std::vector<packet::FrameMix> mix_;  // none: uniform
  std::mt19937 random_{11};
};

class EspPackets {
 public:
  static constexpr std::uint32_t pitch = 2048, batch_packets = 8192, in_front = 34;  // Ethernet and the outer IPv4
  static constexpr std::uint32_t tunnels = 100;                                      // of each suite

  enum class Order { none, of_groups, by_gpu };

  // `which`: a suite's name, or "mixed" for one of all at random, packet by packet.
  static Expected<EspPackets> make(device::Gpu& gpu, std::uint8_t* memory, std::uint32_t count, std::string_view which,
                                   const std::string& lengths) {
    std::vector<const EspSuite*> suites;
    for (const EspSuite& suite : esp_suites) {
      if (which == "mixed" || which == suite.name) suites.push_back(&suite);
    }
    auto frames = FrameLengths::make(lengths);
    if (!frames) return tl::unexpected(frames.error());
    if (suites.empty()) return make_error("there is no suite " + std::string(which));
    const auto slots = static_cast<std::uint32_t>(2 * tunnels * suites.size());
    auto keys = KeyTable::make(slots, true);
    if (!keys) return tl::unexpected(keys.error());
    EspPackets packets(std::move(*keys), memory, count);
    if (auto ok = packets.install(suites); !ok) return tl::unexpected(ok.error());
    if (auto ok = packets.allocate(gpu); !ok) return tl::unexpected(ok.error());
    for (std::uint32_t i = 0; i < count; ++i) packets.add(i, suites, frames->next());
    packets.note_runs();
    return packets;
  }

  KeyTable& keys() { return keys_; }
  std::uint32_t count() const { return count_; }
  std::uint32_t batches() const { return (count_ + batch_packets - 1) / batch_packets; }
  std::uint64_t sealed_bytes() const { return sealed_bytes_; }  // what crosses the link each way
  std::uint64_t frame_bytes() const { return frame_bytes_; }    // of the frames in clear

  // What the next batches do, and in which order.
  void set(bool opens) {
    opens_ = opens;
    for (std::uint32_t i = 0; i < count_; ++i) {
      Job& job = jobs_[i];
      job.flags = opens ? job_opens : 0;
      job.key = job.key / 2 * 2 + (opens ? 1 : 0);
    }
  }
  void group(device::WarpGrouping grouping, const device::WarpTimes& times) {
    device::WarpSchedule schedule({.max_items = batch_packets, .kinds = std::size(esp_suites), .grouping = grouping},
                                  times);
    places_.clear();
    labels_.resize(batches());
    for (std::uint32_t b = 0; b < batches(); ++b) {
      const std::uint32_t first = b * batch_packets, end = std::min(count_, first + batch_packets);
      for (std::uint32_t i = first; i < end; ++i) schedule.add(suite_[i], jobs_[i].cipher_length);
      labels_[b].resize(schedule.most_labels());
      const auto order = schedule.order({orders_ + std::size_t{b} * most_places, most_places}, labels_[b]);
      labels_[b].resize(order.labels.size());
      places_.push_back(static_cast<std::uint32_t>(order.items.size()));
    }
  }
  // Of the times that the last pass noted.
  void learn(device::WarpTimes& times) const {
    for (std::uint32_t b = 0; b < batches(); ++b)
      times.learn(labels_[b], {times_ + std::size_t{b} * most_places / 32, places_[b] / 32});
  }

  // Of the times that the last pass noted: clocks of all warps together, times the 32 lanes of each.
  double lane_clocks(Order order) const {
    double sum = 0;
    for (std::uint32_t b = 0; b < batches(); ++b) {
      const std::uint32_t* const times = times_ + std::size_t{b} * most_places / 32;
      const std::uint32_t places = order == Order::by_gpu ? batch(b, order).count : places_[b];
      for (std::uint32_t w = 0; w < (places + 31) / 32; ++w) sum += 32.0 * times[w];
    }
    return sum;
  }
  // What lanes would take if each warp had packets of one suite and length range: `times` have learned of such.
  double useful_clocks(const device::WarpTimes& times, unsigned ranges, std::uint32_t range_bytes) const {
    double sum = 0;
    for (std::uint32_t i = 0; i < count_; ++i)
      sum += times.of(suite_[i] * ranges + std::min<unsigned>(jobs_[i].cipher_length / range_bytes, ranges - 1));
    return sum;
  }
  // Packets that are not where they were made: each has its number in its header.
  std::uint32_t reordered() const {
    std::uint32_t moved = 0;
    for (std::uint32_t i = 0; i < count_; ++i)
      moved += std::memcmp(reinterpret_cast<const std::uint8_t*>(jobs_[i].data) + 4, &i, sizeof i) == 0 ? 0 : 1;
    return moved;
  }

  GpuBatch batch(std::uint32_t b, Order order) const {
    const std::uint32_t first = b * batch_packets;
    GpuBatch batch{jobs_ + first, verdicts_ + first, std::min(batch_packets, count_ - first), nullptr, &runs_[b]};
    batch.opens = opens_;
    batch.makes_order = order == Order::by_gpu;
    if (order != Order::none) batch.times = times_ + std::size_t{b} * most_places / 32;
    if (order == Order::of_groups) batch.order = {orders_ + std::size_t{b} * most_places, places_[b]};
    return batch;
  }

  // Of warps in that order, or in that of the batch: how much of the time of the longest packet's lane all others are
  // busy, too, and how many suites they have to do one after the other.
  struct Warps {
    double busy = 0, suites = 0;
  };
  Warps warps(Order order) const {
    Warps all;
    double warps = 0, longest_of_all = 0, in_all = 0;
    for (std::uint32_t b = 0; b < batches(); ++b) {
      const GpuBatch batch = this->batch(b, order);
      const std::uint32_t places = order == Order::of_groups ? places_[b] : batch.count;
      for (std::uint32_t place = 0; place < places; place += 32) {
        unsigned met = 0, longest = 0;
        for (std::uint32_t at = place; at < std::min(place + 32, places); ++at) {
          const std::uint32_t item = order == Order::of_groups ? batch.order[at] : at;
          if (item == device::no_item) continue;
          const std::uint32_t i = b * batch_packets + item;
          met |= 1U << suite_[i];
          longest = std::max<unsigned>(longest, jobs_[i].cipher_length);
          in_all += jobs_[i].cipher_length;
        }
        all.suites += __builtin_popcount(met);
        longest_of_all += 32.0 * longest;
        ++warps;
      }
    }
    all.suites /= warps;
    all.busy = in_all / longest_of_all;
    return all;
  }

  void forget_verdicts() { std::fill_n(verdicts_, count_, Verdict::tag_mismatch); }
  Expected<void> all_done() const {
    const auto* const bad = std::find_if(verdicts_, verdicts_ + count_, [](Verdict v) { return v != Verdict::done; });
    if (bad == verdicts_ + count_) return {};
    return make_error("NOT VERIFIED: packet " + std::to_string(bad - verdicts_) + " was not done");
  }
  // All texts as make() made them.
  void refill() {
    for (std::uint32_t i = 0; i < count_; ++i) fill(text_of(jobs_[i]), jobs_[i].cipher_length, i);
  }
  // Every packet's text is as make() made it.
  Expected<void> all_clear() const {
    std::vector<std::uint8_t> text(pitch);
    for (std::uint32_t i = 0; i < count_; ++i) {
      fill(text.data(), jobs_[i].cipher_length, i);
      if (std::memcmp(text.data(), text_of(jobs_[i]), jobs_[i].cipher_length) == 0) continue;
      return make_error("NOT VERIFIED: packet " + std::to_string(i) + " (" + esp_suites[suite_[i]].name + ", " +
                        std::to_string(jobs_[i].cipher_length) + " bytes) is not as it was");
    }
    return {};
  }
  // What is sealed, opened by the CPU, which leaves it in clear.
  Expected<void> open_by_cpu(Cpu& cpu) {
    set(true);
    forget_verdicts();
    cpu.run(keys_, {jobs_, count_}, {verdicts_, count_});
    auto ok = all_done();
    return ok ? all_clear() : ok;
  }

 private:
  static constexpr std::size_t most_places = batch_packets + 32 * std::size(esp_suites);

  EspPackets(KeyTable keys, std::uint8_t* memory, std::uint32_t count)
      : keys_(std::move(keys)), memory_(memory), count_(count) {}

  // A packet's text follows from its number.
  static void fill(std::uint8_t* at, std::uint32_t length, std::uint32_t number) {
    std::minstd_rand random(number + 1);
    for (std::uint32_t i = 0; i < length; i += 4) {
      const auto word = static_cast<std::uint32_t>(random());
      std::memcpy(at + i, &word, std::min<std::size_t>(4, length - i));
    }
  }
  static std::uint8_t* text_of(const Job& job) { return reinterpret_cast<std::uint8_t*>(job.data) + job.cipher_offset; }

  // Slot 2t seals tunnel t, and the one behind it opens it.
  Expected<void> install(std::span<const EspSuite* const> suites) {
    std::mt19937 random(3);
    std::uint8_t bytes[128];
    for (std::uint32_t t = 0; t < tunnels * suites.size(); ++t) {
      const EspSuite& suite = *suites[t % suites.size()];
      for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
      const Algorithm* const algorithm = crypto::algorithm(suite.cipher, suite.hash);
      if (algorithm == nullptr) return make_error(std::string(suite.name) + " is not registered");
      KeyMaterial material{suite.cipher,
                           suite.hash,
                           std::span(bytes).first(suite.key_length),
                           std::span(bytes).subspan(32, algorithm->salt_length),
                           std::span(bytes).subspan(64, digest_length(suite.hash)),
                           static_cast<std::uint8_t>(suite.tag_length)};
      for (const bool opens : {false, true}) {
        material.opens = opens;
        auto slot = keys_.install(material);
        if (!slot) return tl::unexpected(slot.error());
      }
    }
    return {};
  }

  Expected<void> allocate(device::Gpu& gpu) {
    const auto take = [&](auto*& where, std::size_t count) -> Expected<void> {
      auto memory = gpu.allocate_host(count * sizeof *where);
      if (!memory) return tl::unexpected(memory.error());
      where = static_cast<std::remove_reference_t<decltype(where)>>(*memory);
      return {};
    };
    const std::size_t places = batches() * most_places;
    auto ok = take(jobs_, count_);
    ok = ok ? take(verdicts_, count_) : ok;
    ok = ok ? take(orders_, places) : ok;
    return ok ? take(times_, places / 32 + 1) : ok;
  }

  void add(std::uint32_t i, std::span<const EspSuite* const> suites, std::uint32_t frame) {
    const auto tunnel = static_cast<std::uint32_t>(random_() % (tunnels * suites.size()));
    const EspSuite& suite = *suites[tunnel % suites.size()];
    const auto iv = static_cast<std::uint32_t>(explicit_iv_length(suite.cipher));
    const std::uint32_t block = suite.cipher == Cipher::aes_cbc ? 16 : 4;
    const auto tag = static_cast<std::uint32_t>(suite.tag_length);
    const std::uint32_t most = (pitch - 128 - in_front - 8 - iv - tag) / 16 * 16;
    Job& job = jobs_[i] = {};
    job.data = reinterpret_cast<std::uint64_t>(memory_ + std::size_t{i} * pitch + in_front);
    job.key = 2 * tunnel;
    job.cipher_offset = static_cast<std::uint16_t>(8 + iv);
    // The packet in the frame, padding, and the two bytes of ESP's trailer.
    job.cipher_length = static_cast<std::uint16_t>(std::min((frame - 14 + 2 + block - 1) / block * block, most));
    fill(text_of(job), job.cipher_length, i);
    std::memcpy(reinterpret_cast<std::uint8_t*>(job.data) + 4, &i, 4);
    if (iv != 0) std::memcpy(text_of(job) - iv, &i, 4);
    suite_.push_back(static_cast<std::uint8_t>(&suite - esp_suites));
    frame_bytes_ += frame;
    sealed_bytes_ += length_of(i);
  }
  std::uint32_t length_of(std::uint32_t i) const {
    return jobs_[i].cipher_offset + jobs_[i].cipher_length +
           static_cast<std::uint32_t>(esp_suites[suite_[i]].tag_length);
  }
  void note_runs() {
    runs_.resize(batches());
    for (std::uint32_t b = 0; b < batches(); ++b) {
      runs_[b].clear();
      for (std::uint32_t i = b * batch_packets; i < std::min(count_, (b + 1) * batch_packets); ++i)
        runs_[b].add(jobs_[i].data, length_of(i));
    }
  }

  KeyTable keys_;
  std::uint8_t* memory_;
  std::uint32_t count_;
  bool opens_ = false;
  Job* jobs_ = nullptr;
  Verdict* verdicts_ = nullptr;
  std::uint16_t* orders_ = nullptr;  // most_places for each batch
  std::uint32_t* times_ = nullptr;
  std::vector<std::uint8_t> suite_;  // by packet
  std::vector<std::uint32_t> places_;
  std::vector<std::vector<std::uint16_t>> labels_;
  std::vector<device::RunList> runs_;
  std::uint64_t sealed_bytes_ = 0, frame_bytes_ = 0;
  std::mt19937 random_{5};
};

}  // namespace sluice::crypto
