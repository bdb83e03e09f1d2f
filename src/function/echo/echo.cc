#include "function/echo/echo.h"

#include "device/byte_sum.h"

namespace sluice::function {
namespace {

EchoPath path_of(const std::string& name) {
  if (name == "copy") return EchoPath::copy;
  if (name == "direct") return EchoPath::direct;
  if (name == "direct-down") return EchoPath::direct_down;
  return EchoPath::automatic;
}

const bool registered = engine::register_element(
    {.name = "echo",
     .text = "measuring: every byte goes to the device and comes back into the frame",
     .make = [](Settings& settings, const engine::PortTable& ports) -> Expected<std::unique_ptr<engine::Element>> {
       const auto key = static_cast<std::uint8_t>(settings.integer("key", 0, 0, 255));
       const std::string path = settings.choice("path", "auto", {"auto", "copy", "direct", "direct-down"});
       const std::uint64_t piece = settings.bytes("piece", 8 << 20);
       return std::make_unique<Echo>(peers_of(ports), key, path_of(path), piece);
     },
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
  for (std::uint32_t i = 0; i < batch.count; ++i) batch.drop(i, engine::device_lost);
}

}  // namespace sluice::function
