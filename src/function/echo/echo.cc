#include "function/echo/echo.h"

#include "base/option.h"
#include "device/byte_sum.h"

namespace sluice::function {
namespace {

struct EchoOptions {
  std::uint8_t key = 0;
  EchoPath path = EchoPath::automatic;
  std::uint64_t piece_bytes = 8 << 20;
};

const std::vector<Option<EchoOptions>>& settings() {
  static const std::vector<Option<EchoOptions>> all = {
      option::number("key", &EchoOptions::key, {0, 255}, "each byte behind the first 12 is XORed with it"),
      option::word("path", &EchoOptions::path,
                   {{"auto", EchoPath::automatic},
                    {"copy", EchoPath::copy},
                    {"direct", EchoPath::direct},
                    {"direct-down", EchoPath::direct_down}},
                   "how bytes travel on a GPU"),
      option::bytes("piece", &EchoOptions::piece_bytes,
                    "a large batch is copied in pieces of about so many bytes, so that one piece comes down while the "
                    "next goes up")};
  return all;
}

const bool registered = engine::register_element(
    {.name = "echo",
     .text = "measuring: every byte goes to the device and comes back into the frame",
     .make = [](Settings& section, const engine::PortTable& ports) -> Expected<std::unique_ptr<engine::Element>> {
       EchoOptions options;
       option::read(settings(), section, options);
       return std::make_unique<Echo>(peers_of(ports), options.key, options.path, options.piece_bytes);
     },
     .options = [] { return std::vector{option::section("[echo]", settings())}; },
     .ends_chain = true});

}  // namespace

void Echo::compute(engine::Batch& batch, engine::Span span) {
  std::uint32_t* const verdict = verdicts(batch);
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    auto* frame = reinterpret_cast<std::uint8_t*>(batch.frame[i]);
    const std::uint32_t length = batch.length[i];
    verdict[i] = device::sum_bytes(frame, length);
    for (std::uint32_t b = echo_unchanged_bytes; b < length; ++b) {
      frame[b] ^= key_;
    }
  }
}

void Echo::lost(engine::Batch& batch) {
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    if (batch.is_live(i)) batch.drop(i, engine::device_lost);
  }
}

}  // namespace sluice::function
