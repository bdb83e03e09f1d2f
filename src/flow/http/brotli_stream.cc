#include "flow/http/brotli_stream.h"

#include <brotli/decode.h>

#include <algorithm>

namespace sluice::flow::http {
namespace {

// Windows of 2^18 to 2^24 bytes are declared by four bits: 1, and three of the exponent less 17 (RFC 7932 section 9.1).
constexpr unsigned smallest_bits = 18, largest_bits = 19;
constexpr std::uint64_t window_gap = 16;  // a window is 2^bits - 16 bytes

constexpr std::uint64_t window_of(unsigned bits) {
  return (std::uint64_t{1} << bits) - window_gap;
}

unsigned bits_for(std::uint64_t wanted) {
  return wanted != 0 && wanted <= window_of(smallest_bits) ? smallest_bits : largest_bits;
}

bool is_no_memory(BrotliDecoderErrorCode code) {
  return code <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES && code >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES;
}

}  // namespace

// The library's ring has some bytes more than the window, and so takes a block of twice the size.
std::size_t BrotliStream::window_block(std::uint64_t wanted) {
  return std::size_t{2} << bits_for(wanted);
}

void* BrotliStream::take_block(void* stream, std::size_t size) {
  auto& self = *static_cast<BrotliStream*>(stream);
  if (size > BlockPool::largest || self.memory_ + BlockPool::block_size(size) > most_memory) return nullptr;
  self.built_ += size;
  self.memory_ += BlockPool::block_size(size);
  void* const block = self.pool_->take(size);
  if (block == nullptr) self.memory_ -= BlockPool::block_size(size);
  return block;
}

void BrotliStream::give_block(void* stream, void* block) {
  auto& self = *static_cast<BrotliStream*>(stream);
  const std::size_t before = self.pool_->in_use();
  self.pool_->give(block);
  self.memory_ -= before - self.pool_->in_use();
}

bool BrotliStream::begin(BlockPool& pool, std::uint64_t wanted) {
  end();
  pool_ = &pool;
  window_bits_ = bits_for(wanted);
  most_ = taken_ = made_ = built_ = reported_ = 0;
  memory_ = 0;
  state_ = BrotliDecoderCreateInstance(take_block, give_block, this);
  built_ = 0;  // the state itself is no table
  return state_ != nullptr;
}

void BrotliStream::end() {
  if (state_ != nullptr) BrotliDecoderDestroyInstance(state_);
  state_ = nullptr;
}

BrotliStream::Result BrotliStream::take(std::string_view& bytes) {
  if (bytes.empty()) return Result::more;
  std::size_t given = std::min<std::size_t>(bytes.size(), slice - taken_ % slice);
  const auto* next = reinterpret_cast<const std::uint8_t*>(bytes.data());
  auto first = static_cast<std::uint8_t>(bytes.front());
  if (taken_ == 0) {
    const unsigned over = first >> 1 & 7;
    if ((first & 1) != 0 && over != 0 && 17 + over > window_bits_) {
      first = static_cast<std::uint8_t>((first & 0xf0U) | (window_bits_ - 17) << 1 | 1U);
      most_ = window_of(window_bits_);
    }
    next = &first;
    given = 1;
  }
  std::size_t left = given, no_output = 0;
  const auto result = BrotliDecoderDecompressStream(state_, &left, &next, &no_output, nullptr, nullptr);
  taken_ += given - left;
  bytes.remove_prefix(given - left);
  if (result != BROTLI_DECODER_RESULT_ERROR) return Result::more;
  return is_no_memory(BrotliDecoderGetErrorCode(state_)) ? Result::no_memory : Result::broken;
}

bool BrotliStream::is_done() const {
  return BrotliDecoderIsFinished(state_) == BROTLI_TRUE;
}

std::string_view BrotliStream::made() {
  std::size_t size = 4096;
  const std::uint8_t* const bytes = BrotliDecoderTakeOutput(state_, &size);
  made_ += size;
  return {reinterpret_cast<const char*>(bytes), size};
}

std::uint64_t BrotliStream::cost() {
  const std::uint64_t all = std::max(made_, built_), before = reported_;
  reported_ = all;
  return all - before;
}

}  // namespace sluice::flow::http
