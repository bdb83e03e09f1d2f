// Frames of the memory replay port that are whole TCP conversations: handshake, segments of both directions with their
// sequence and acknowledgement numbers, FINs of both sides. One for each 64 frames is under way at once, their frames
// mixed by chance, each one's in order. None is cut by the end of the frames, so that handing them out again begins
// each anew, by a SYN after its FINs. A conversation has 12 frames at least, 28 on average; the receiver acknowledges
// every second segment, or with its own data.
//
// Sizes are those of the mix, as closely as a conversation allows: handshakes, acknowledgements and FINs take the place
// of small frames of the mix, as long as it has some; a mix of large ones has them besides. Small frames are padded to
// 64 bytes.
//
// http: requests (GET, with the headers of a browser) to port 80 and responses with a Content-Length, one to eight
// segments of body, until the frames of the connection are used up. Else the sides take turns on port 4000, a client
// with one or two segments, a server with one to eight.
//
// With `contents` requests are made of these, as an attack (replay_request.h), and larger than the mix says. With
// `codings` each response is one segment with a body that costs its reader most (replay_codings.h).
//
// With `resets` nothing of a client's data can be handed on: of each stream the first byte is missing, and all others
// wait for it until a reset ends it. One for each 256 frames is under way at once, and all resets come at the end, one
// after another: a few frames that release what all others brought.
//
// Else one conversation in 32 has something that lies across two segments of the client: `planted_text` in a stream, or
// a request for `planted_path`.
//
// Cost: some us for each frame. Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "packet/frame_mix.h"
#include "packet/ip_address.h"

namespace sluice::port {

// In two parts, of which the second begins a segment.
struct Planted {
  std::string_view first, second;
  std::string whole() const { return std::string(first) + std::string(second); }
};
inline constexpr Planted planted_text{"a text across ", "two segments"};
inline constexpr Planted planted_path{"/a-path-across", "-two-segments.html"};

struct ConversationSource {
  bool http = false;
  int family = 4;
  unsigned frames = 0;  // 64 at least
  std::uint64_t seed = 1;
  std::string own_mac;
  bool text = false;                                   // payloads are: of HTTP, what bodies are declared as
  const std::vector<std::string>* contents = nullptr;  // of HTTP: requests are made of them (port/replay_request.h)
  bool codings = false;                                // of HTTP
  bool resets = false;                                 // of what is not HTTP
  packet::FrameMix* mix = nullptr;
  std::function<packet::IpAddress()> address;               // of a client or a server
  std::function<void(std::span<std::uint8_t> bytes)> fill;  // a payload
};

std::vector<std::vector<std::uint8_t>> make_conversations(const ConversationSource& source);

}  // namespace sluice::port
