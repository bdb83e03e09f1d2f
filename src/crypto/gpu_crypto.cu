#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "crypto/algorithm.h"
#include "crypto/gpu_crypto.h"
#include "crypto/gpu_kernels.cuh"
#include "crypto/gpu_launcher.cuh"
#include "crypto/secret.h"
#include "device/cuda_check.h"
#include "device/cuda_event.h"
#include "device/cuda_stream.h"
#include "device/frame_copy.h"
#include "device/launch.h"

namespace sluice::crypto {
namespace {

using device::FrameRun;
using device::StagedFrames;

constexpr unsigned max_pieces = 64, apply_blocks = 32, apply_warps = 4;

// What a slot's jobs need of a kernel.
struct Needs {
  bool all = false;  // SRTP's does not do it
  bool inverse = false;
};

Needs needs_of(const Key& key) {
  const bool is_media =
      (key.cipher == Cipher::none || key.cipher == Cipher::aes_ctr || key.cipher == Cipher::aes_gcm) &&
      (key.hash == Hash::none || key.hash == Hash::hmac_sha1) && key.tag_length <= 4 * ForMedia::tag_words;
  return {.all = !is_media, .inverse = key.cipher == Cipher::aes_cbc && key.opens != 0};
}

// What one stream has of its own: memory for its batch's packets, and what follows a piece's way up, so that the next
// one goes up meanwhile.
struct Staging {
  device::GpuStream* stream = nullptr;
  device::DeviceMemory memory, orders;
  device::Stream down;
  device::Event is_up, is_down;
  bool has_keys = true;  // its next launch need not wait for the last change
};

// Records on their way.
struct Records {
  KeyRecord* record = nullptr;
  std::size_t used = 0;
  device::Event read;
};

class CudaCrypto final : public GpuCrypto {
 public:
  CudaCrypto(device::Gpu& gpu, KeyTable& keys, const GpuCryptoOptions& options)
      : gpu_(gpu),
        table_(keys),
        options_(options),
        pitch_(device::staging_pitch(options.max_packet_bytes)),
        most_records_(std::max<std::size_t>(options.max_sync_bytes / sizeof(KeyRecord), 1)),
        tag_length_(keys.capacity()),
        needs_(keys.capacity()) {}

  ~CudaCrypto() override {
    if (keys_ && !gpu_.lost()) {
      gpu_.stream(0).raw();  // makes the GPU the current one
      if (cudaDeviceSynchronize() == cudaSuccess && cudaMemset(keys(), 0, key_bytes()) == cudaSuccess)
        cudaDeviceSynchronize();
    }
    for (Records& records : records_)
      if (records.record != nullptr) crypto::wipe(records.record, most_records_ * sizeof(KeyRecord));
    if (follower_) table_.unfollow(*follower_);
  }

  Expected<void> create() {
    auto keys = gpu_.allocate_device(key_bytes());
    if (!keys) return tl::unexpected(keys.error());
    gpu_.stream(0).raw();
    SLUICE_CUDA_TRY(cudaMemset(keys->as<void>(), 0, key_bytes()));
    SLUICE_CUDA_TRY(cudaDeviceSynchronize());
    keys_ = std::move(*keys);
    if (auto ok = launcher_.create(gpu_.info().index, options_.max_packets); !ok) return ok;
    for (Records& records : records_) {
      auto memory = gpu_.allocate_host(most_records_ * sizeof(KeyRecord));
      if (!memory) return tl::unexpected(memory.error());
      records.record = static_cast<KeyRecord*>(*memory);
      if (auto ok = records.read.create(); !ok) return ok;
    }
    if (auto ok = make_staging(); !ok) return ok;
    follower_ = table_.follow(gpu_side());
    while (!up_to_date()) {
      if (auto ok = sync(gpu_.stream(0)); !ok) return ok;
      SLUICE_CUDA_TRY(cudaStreamSynchronize(static_cast<cudaStream_t>(gpu_.stream(0).raw())));
    }
    return {};
  }

  Expected<void> sync(device::GpuStream& stream) override {
    if (gpu_.lost()) return make_error("GPU lost: " + gpu_.why());
    if (up_to_date() && records_[0].used + records_[1].used == 0) return {};
    for (Records& records : records_) {
      if (auto ok = forget(records); !ok) return ok;
    }
    Records& records = records_[next_];
    if (records.used != 0 || up_to_date()) return {};
    records.used = table_.take_changes(*follower_, {records.record, most_records_});
    for (const KeyRecord& record : std::span(records.record, records.used)) {
      tag_length_[record.slot] = record.key.tag_length;
      const Needs now = needs_of(record.key), before = std::exchange(needs_[record.slot], now);
      slots_for_all_ += unsigned{now.all} - unsigned{before.all};
      slots_for_inverse_ += unsigned{now.inverse} - unsigned{before.inverse};
    }
    // Changes follow one another, whatever streams they are given to: the records of one slot must.
    if (auto ok = records_[1 - next_].read.before(stream); !ok) return ok;
    const auto blocks =
        static_cast<unsigned>(std::min<std::size_t>((records.used + apply_warps - 1) / apply_warps, apply_blocks));
    SLUICE_CUDA_TRY(device::launch(apply_records, blocks, 32 * apply_warps, 0, static_cast<cudaStream_t>(stream.raw()),
                                   keys(), static_cast<const KeyRecord*>(records.record),
                                   static_cast<unsigned>(records.used)));
    for (const auto& staging : staging_) staging->has_keys = false;
    last_ = next_;
    next_ = 1 - next_;
    return records.read.record(stream);
  }

  bool up_to_date() const override { return !table_.has_changes(*follower_); }

  using GpuCrypto::run;
  Expected<void> run(std::span<const GpuBatch> batches, device::GpuStream& stream) override {
    if (gpu_.lost()) return make_error("GPU lost: " + gpu_.why());
    const auto found =
        std::find_if(staging_.begin(), staging_.end(), [&](const auto& s) { return s->stream == &stream; });
    if (found == staging_.end()) return make_error("a batch on a stream of another GPU");
    Staging& staging = **found;
    if (!staging.has_keys) {
      if (auto ok = records_[last_].read.before(stream); !ok) return ok;
      staging.has_keys = true;
    }
    for (; !batches.empty(); batches = batches.subspan(std::min<std::size_t>(options_.together, batches.size()))) {
      auto enqueued = enqueue(batches.first(std::min<std::size_t>(options_.together, batches.size())), staging);
      // What was enqueued before the error may still write to the packets.
      if (!enqueued) cudaDeviceSynchronize();
      if (!enqueued) return enqueued;
    }
    return {};
  }

  std::size_t device_bytes() const override {
    return key_bytes() + staging_.size() * (staging_bytes() + order_bytes());
  }

 private:
  std::size_t staging_bytes() const { return std::size_t{options_.together} * options_.max_packets * pitch_; }
  std::size_t order_places() const { return std::size_t{options_.max_packets} + device::WarpSchedule::warp; }
  std::size_t order_bytes() const { return options_.together * order_places() * sizeof(std::uint16_t); }
  Key* keys() const { return keys_.as<Key>(); }
  std::size_t key_bytes() const { return std::size_t{table_.capacity()} * sizeof(Key); }

  Expected<void> make_staging() {
    for (unsigned s = 0; s < gpu_.stream_count(); ++s) {
      auto staging = std::make_unique<Staging>();
      staging->stream = &gpu_.stream(s);
      auto memory = gpu_.allocate_device(staging_bytes());
      if (!memory) return tl::unexpected(memory.error());
      staging->memory = std::move(*memory);
      auto orders = gpu_.allocate_device(order_bytes());
      if (!orders) return tl::unexpected(orders.error());
      staging->orders = std::move(*orders);
      if (auto ok = staging->down.create(); !ok) return ok;
      for (device::Event* event : {&staging->is_up, &staging->is_down}) {
        if (auto ok = event->create(); !ok) return ok;
      }
      staging_.push_back(std::move(staging));
    }
    frame_.resize(options_.max_packets);
    length_.resize(options_.max_packets);
    runs_.reserve(std::size_t{options_.together} * most_staged_runs);
    return {};
  }

  // Records that the GPU has read are wiped.
  static Expected<void> forget(Records& records) {
    if (records.used == 0) return {};
    const auto passed = records.read.passed();
    if (!passed) return tl::unexpected(passed.error());
    if (*passed) crypto::wipe(records.record, std::exchange(records.used, 0) * sizeof(KeyRecord));
    return {};
  }

  static bool has_runs(const GpuBatch& batch) {
    return batch.runs != nullptr && batch.runs->complete && batch.runs->frames == batch.count;
  }

  tl::unexpected<Error> too_long(std::uint32_t length) const {
    return make_error("a packet of " + std::to_string(length) + " bytes: max_packet_bytes is " +
                      std::to_string(options_.max_packet_bytes));
  }

  // Where the packets are, and how long with their tags.
  Expected<void> measure(const GpuBatch& batch) {
    if (batch.count > options_.max_packets)
      return make_error("a batch of " + std::to_string(batch.count) + " packets: max_packets is " +
                        std::to_string(options_.max_packets));
    if (has_runs(batch)) {
      bytes_ = batch.runs->bytes;
      return batch.runs->longest <= options_.max_packet_bytes ? Expected<void>{} : too_long(batch.runs->longest);
    }
    bytes_ = 0;
    for (std::uint32_t i = 0; i < batch.count; ++i) {
      const Job& job = batch.jobs[i];
      const unsigned tag = job.key < tag_length_.size() ? tag_length_[job.key] : 0;
      const std::uint32_t length = std::uint32_t{job.cipher_offset} + job.cipher_length + job.tag_gap + tag;
      if (length > options_.max_packet_bytes || length > 0xFFFF) return too_long(length);
      frame_[i] = job.data;
      length_[i] = static_cast<std::uint16_t>(length);
      bytes_ += length;
    }
    return {};
  }

  // Batches of one call, of which the first packet of each has a row of its own in the staging memory.
  Expected<void> enqueue(std::span<const GpuBatch> batches, Staging& staging) {
    parts_.clear();
    runs_.clear();
    std::uint32_t row = 0;
    auto* orders = staging.orders.as<std::uint16_t>();
    for (const GpuBatch& batch : batches) {
      if (auto ok = measure(batch); !ok) return ok;
      add_parts(batch, row, orders);
      row += batch.count;
      orders += order_places();
    }
    const auto main = static_cast<cudaStream_t>(staging.stream->raw());
    const std::span<const Part> parts(parts_);
    const auto is_copied = [](const Part& part) { return part.run.count != 0; };
    const bool is_one = joined(parts) == parts.size();
    const cudaStream_t down = is_one || std::ranges::none_of(parts, is_copied) ? main : staging.down.raw();
    for (std::size_t first = 0; first < parts.size();) {
      const std::size_t count = joined(parts.subspan(first));
      const auto copied = parts.subspan(first, count);
      auto ok = is_copied(copied.front()) ? enqueue_copy(copied, staging, main, down)
                                          : launch(copied.front(), {}, staging, main);
      if (!ok) return ok;
      first += count;
    }
    if (down == main) return {};
    return is_done(staging, main, down);
  }

  // Packets of a batch that travel in one copy, or, `run.count` 0, are read and written where they are; or all of a
  // batch with an order, whose later runs travel in copies of their own.
  struct Part {
    GpuBatch batch;
    FrameRun run;                         // `first`: its row in the staging memory
    std::uint16_t* order = nullptr;       // where one is made
    std::span<const FrameRun> more = {};  // in runs_
  };

  std::byte* scratch(const Staging& staging, const Part& part) const {
    return staging.memory.as<std::byte>() + std::size_t{part.run.first} * pitch_;
  }

  void add_parts(const GpuBatch& batch, std::uint32_t row, std::uint16_t* order) {
    if (batch.count == 0) return;
    // What is done in an order is all there before it begins, so there is nothing to gain by pieces.
    const bool ordered = !batch.order.empty() || batch.makes_order;
    const unsigned most = ordered ? most_staged_runs : max_pieces;
    const std::uint64_t piece_bytes = ordered ? ~std::uint64_t{0} : options_.piece_bytes;
    std::array<FrameRun, max_pieces> pieces;
    unsigned count = 0;
    if (options_.path != GpuPath::direct) {
      count = has_runs(batch)
                  ? batch.runs->split(pieces.data(), most, piece_bytes)
                  : device::find_runs(frame_.data(), length_.data(), batch.count, pieces.data(), most, piece_bytes);
      if (options_.path == GpuPath::automatic && !device::worth_copying(pieces.data(), count, bytes_)) count = 0;
    }
    for (FrameRun& piece : std::span(pieces).first(count)) piece.first += row;
    if (count == 0)
      parts_.push_back(
          {batch, {.address = 0, .first = row, .count = 0, .stride = 0, .width = 0, .descending = false}, order});
    if (ordered && count != 0) {
      const std::size_t before = runs_.size();
      runs_.insert(runs_.end(), pieces.begin() + 1, pieces.begin() + count);
      parts_.push_back({batch, pieces[0], order, std::span(runs_).subspan(before)});
      return;
    }
    for (const FrameRun& piece : std::span(pieces).first(count)) {
      GpuBatch part = batch;
      part.jobs += piece.first - row;
      part.verdicts += piece.first - row;
      part.count = piece.count;
      if (part.sums != nullptr) part.sums += piece.first - row;
      parts_.push_back({part, piece});
    }
  }

  // How many of the first parts go in one copy.
  std::size_t joined(std::span<const Part> parts) const {
    if (parts.empty()) return 0;
    FrameRun all = parts.front().run;
    std::size_t count = 1;
    while (count < parts.size() && parts[count - 1].more.empty() && parts[count].more.empty() &&
           all.row_bytes() + parts[count].run.row_bytes() <= options_.piece_bytes &&
           device::join_runs(all, parts[count].run)) {
      ++count;
    }
    return count;
  }

  Expected<void> enqueue_copy(std::span<const Part> parts, Staging& staging, cudaStream_t main, cudaStream_t down) {
    FrameRun all = parts.front().run;
    for (const Part& part : parts.subspan(1)) device::join_runs(all, part.run);
    const std::span<const FrameRun> more = parts.front().more;
    auto* const memory = staging.memory.as<std::byte>();
    auto ok = device::copy_up(all, memory, pitch_, main);
    for (const FrameRun& run : more) ok = ok ? device::copy_up(run, memory, pitch_, main) : ok;
    if (!ok) return ok;
    if (down != main) {
      if (ok = staging.is_up.record(*staging.stream); !ok) return ok;
      if (ok = staging.is_up.before(down); !ok) return ok;
    }
    StagedFrames staged = device::staged_frames(all, memory, pitch_);
    for (const Part& part : parts) {
      if (ok = launch(part, staged, staging, down); !ok) return ok;
      staged.address += static_cast<std::uint64_t>(staged.step * static_cast<std::int64_t>(part.batch.count));
    }
    ok = device::copy_down(all, memory, pitch_, down);
    for (const FrameRun& run : more) ok = ok ? device::copy_down(run, memory, pitch_, down) : ok;
    return ok;
  }

  static Expected<void> is_done(Staging& staging, cudaStream_t main, cudaStream_t down) {
    if (auto ok = staging.is_down.record(down); !ok) return ok;
    return staging.is_down.before(main);
  }

  Expected<void> launch(const Part& part, const StagedFrames& staged, Staging& staging, cudaStream_t stream) {
    const GpuBatch& batch = part.batch;
    GpuWork work{.jobs = batch.jobs,
                 .verdicts = batch.verdicts,
                 .sums = batch.sums,
                 .keys = keys(),
                 .slots = table_.capacity(),
                 .count = batch.count,
                 .staged = staged,
                 .scratch = scratch(staging, part),
                 .pitch = pitch_,
                 .whole_units = options_.own_buffers,
                 .has_inverse = batch.opens && slots_for_inverse_ != 0,
                 .order = nullptr,
                 .times = nullptr,
                 .more_runs = 0,
                 .more_run = {}};
    if (!batch.order.empty()) {
      work.order = batch.order.data();
      work.count = static_cast<std::uint32_t>(batch.order.size());
      work.times = batch.times;
    } else if (batch.makes_order) {
      work.times = batch.times;
      if (auto ok = launcher_.make_order(work, part.order, stream); !ok) return ok;
    } else if (slots_for_all_ == 0) {
      return launcher_.launch_media(work, stream);
    }
    for (const FrameRun& run : part.more)
      work.more_run[work.more_runs++] = {run.first - part.run.first,
                                         device::staged_frames(run, staging.memory.as<std::byte>(), pitch_)};
    return launcher_.launch_all(work, stream);
  }

  device::Gpu& gpu_;
  KeyTable& table_;
  const GpuCryptoOptions options_;
  const std::size_t pitch_, most_records_;
  std::optional<unsigned> follower_;
  JobLauncher launcher_;

  device::DeviceMemory keys_;
  std::array<Records, 2> records_;
  std::size_t next_ = 0, last_ = 0;
  std::vector<std::unique_ptr<Staging>> staging_;  // by stream
  std::vector<std::uint8_t> tag_length_;           // by slot: a line of the table for each packet would cost more
  std::vector<Needs> needs_;                       // by slot
  unsigned slots_for_all_ = 0, slots_for_inverse_ = 0;
  std::vector<std::uint64_t> frame_;  // of the batch that is measured
  std::vector<std::uint16_t> length_;
  std::uint64_t bytes_ = 0;
  std::vector<Part> parts_;     // of what is enqueued
  std::vector<FrameRun> runs_;  // capacity for all that together can have
};

}  // namespace

Expected<std::unique_ptr<GpuCrypto>> GpuCrypto::create(device::Gpu& gpu, KeyTable& keys,
                                                       const GpuCryptoOptions& options) {
  auto made = std::make_unique<CudaCrypto>(gpu, keys, options);
  if (auto ok = made->create(); !ok) return tl::unexpected(ok.error());
  return made;
}

}  // namespace sluice::crypto
