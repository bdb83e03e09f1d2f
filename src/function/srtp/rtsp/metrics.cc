#include "function/srtp/rtsp/metrics.h"

#include <string>

namespace sluice::function::rtsp {

std::vector<engine::ServiceMetric> Metrics::list() const {
  const auto now = [](const Count& count) { return count.load(std::memory_order_relaxed); };
  std::vector<engine::ServiceMetric> all = {
      {"rtsp_connections", "RTSP connections of clients", now(connections), false},
      {"rtsp_waiting", "RTSP connections whose first request has to say which server is meant", now(waiting), false},
      {"rtsp_rate_bits", "bits a second that media have of max_rate", now(rate), false},
      {"rtsp_max_rate_bits", "max_rate; 0: there is no limit", now(max_rate), false},
      {"rtsp_media", "media that RTSP has opened", now(streams), false},
      {"rtsp_accepted", "RTSP connections that were accepted", now(accepted), true},
      {"rtsp_too_many_connections", "RTSP connections over max_connections, closed at once", now(too_many), true},
      {"rtsp_too_many_of_client", "RTSP connections over max_connections_per_client, closed at once",
       now(too_many_of_client), true},
      {"rtsp_server_unreachable", "RTSP connections whose server could not be reached", now(server_unreachable), true},
      {"rtsp_no_server", "RTSP connections for a name or path that no [[srtp.rtsp.server]] has", now(no_server), true},
      {"rtsp_failed", "RTSP connections that were ended for want of memory", now(failed), true},
      {"rtsp_idle_closed", "RTSP connections without a stream that were silent for idle_timeout", now(idle), true},
      {"rtsp_overflowed", "RTSP connections that were ended because too much waited for a side", now(overflowed), true},
      {"rtsp_requests", "requests of clients on RTSP connections that have ended", now(requests), true},
      {"rtsp_interleaved_dropped", "frames of RTP over RTSP on connections that have ended", now(interleaved_dropped),
       true},
      {"rtsp_rules_restored", "rules and routes of the kernel's for the proxy that were gone, and made again",
       now(rules_restored), true},
      {"rtsp_opened", "media that were opened", now(opened), true},
  };
  for (unsigned i = 0; i < media::rtsp::end_reasons; ++i) {
    const std::string name = media::rtsp::end_reason_name(static_cast<media::rtsp::EndReason>(i));
    all.push_back({"rtsp_closed_" + name, "media that ended: " + name, now(closed[i]), true});
  }
  for (unsigned i = 0; i < media::rtsp::refusals; ++i) {
    const std::string name = media::rtsp::refusal_name(static_cast<media::rtsp::Refusal>(i));
    all.push_back({"rtsp_refused_" + name, "answers of the proxy's own: " + name, now(refused[i]), true});
  }
  for (unsigned i = 0; i < media::rtsp::omissions; ++i) {
    const std::string name = media::rtsp::omission_name(static_cast<media::rtsp::Omission>(i));
    all.push_back(
        {"rtsp_left_out_" + name, "parts of messages that the proxy has left out: " + name, now(left_out[i]), true});
  }
  return all;
}

}  // namespace sluice::function::rtsp
