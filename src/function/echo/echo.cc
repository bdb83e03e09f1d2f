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

const bool registered = engine::register_function(
    {"echo", "measuring: every byte goes to the device and comes back into the frame",
     [](Settings& settings, const engine::PortTable& ports) -> Expected<std::unique_ptr<engine::Function>> {
       const auto key = static_cast<std::uint8_t>(settings.integer("key", 0, 0, 255));
       const std::string path = settings.choice("path", "auto", {"auto", "copy", "direct", "direct-down"});
       const std::uint64_t piece = settings.bytes("piece", 8 << 20);
       return std::make_unique<Echo>(peers_of(ports), key, path_of(path), piece);
     }});

}  // namespace

void Echo::compute(engine::Batch& batch, std::uint32_t first, std::uint32_t count) {
  for (std::uint32_t i = first; i < first + count; ++i) {
    auto* frame = reinterpret_cast<std::uint8_t*>(batch.frame[i]);
    const std::uint32_t length = batch.length[i];
    batch.verdict[i] = device::sum_bytes(frame, length);
    for (std::uint32_t b = echo_unchanged_bytes; b < length; ++b) {
      frame[b] ^= key_;
    }
  }
}

}  // namespace sluice::function
