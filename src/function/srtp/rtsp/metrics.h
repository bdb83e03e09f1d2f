// What the RTSP proxy counts, for the API and the metrics. Written by its thread; read by any.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "engine/service.h"
#include "media/rtsp/proxy.h"

namespace sluice::function::rtsp {

struct Metrics {
  using Count = std::atomic<std::uint64_t>;
  Count connections{0};  // now
  Count waiting{0};      // now: connections of the explicit mode whose first request has not come
  Count streams{0};      // now: media
  Count rate{0};         // now: bits a second that they have of max_rate
  Count max_rate{0};     // 0: no limit
  Count accepted{0};
  Count too_many{0};             // connections over max_connections, closed at once
  Count too_many_of_client{0};   // over max_connections_per_client, closed at once
  Count server_unreachable{0};   // connections whose server did not answer
  Count failed{0};               // connections ended for want of memory
  Count no_server{0};            // connections of the explicit mode that no [[srtp.rtsp.server]] takes
  Count idle{0};                 // connections closed by idle_timeout
  Count overflowed{0};           // connections ended for what waited in them
  Count requests{0};             // of connections that have ended
  Count interleaved_dropped{0};  // the same
  Count opened{0};
  Count rules_restored{0};  // and routes of the kernel's, that others had taken away
  std::array<Count, media::rtsp::end_reasons> closed{};
  std::array<Count, media::rtsp::refusals> refused{};
  std::array<Count, media::rtsp::omissions> left_out{};

  static void add(Count& count, std::uint64_t n = 1) { count.fetch_add(n, std::memory_order_relaxed); }
  std::vector<engine::ServiceMetric> list() const;
};

}  // namespace sluice::function::rtsp
