// What `sluice capture` asks of a gateway, as the API has it in JSON (docs/api.md), and what comes back.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/engine.h"

namespace sluice::control {

// Of the text of a filter.
inline constexpr std::size_t longest_filter = 4096;

struct CaptureRequest {
  std::string target;              // a port's name, "any", "lane:N" or "drops"
  std::string filter;              // as tcpdump's
  std::string reason;              // of drops: the name of one; empty: all
  std::string direction;           // "in", "out"; empty: both. Not of drops
  std::uint32_t snapshot = 16384;  // bytes of a frame that are kept
  std::uint32_t buffer = 4096;     // frames that wait for who reads them
  std::uint64_t count = 0;         // frames, then it ends; 0: no end
  std::uint64_t seconds = 0;       // likewise
};

// An Error is a sentence that names the key.
Expected<CaptureRequest> parse_capture_request(std::string_view json);
std::string to_json(const CaptureRequest& request);
// An Error for a filter that is longer than longest_filter.
Expected<void> check_filter_length(const std::string& filter);

// A reader that takes nothing for so long is left.
inline constexpr std::chrono::seconds capture_patience{2};

// A pcapng (draft-ietf-opsawg-pcapng), as it comes into being: an interface for each port; of each frame the direction
// (epb_flags), what became of it in a comment, and how many were lost before it (epb_dropcount). Frames stand in the
// order in which they came, and wait for what becomes of them for 0.2 s at most. At least each 250 ms an interface
// statistics block, with all that came and all that were lost, reports that it goes on.
//
// Thread-safety: one thread.
class CaptureStream {
 public:
  virtual ~CaptureStream() = default;
  // Whole blocks, which may be none after some milliseconds. False: these were the last.
  virtual bool next(std::string& bytes) = 0;
};

// `ended`: whether it is to end, from now on. The engine must outlive the stream. An Error is a sentence.
Expected<std::unique_ptr<CaptureStream>> open_capture(engine::Engine& engine, const CaptureRequest& request,
                                                      std::function<bool()> ended);

}  // namespace sluice::control
