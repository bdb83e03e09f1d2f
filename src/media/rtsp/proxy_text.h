// The proxy's words.
#pragma once

#include <string_view>

#include "media/rtsp/proxy.h"

namespace sluice::media::rtsp {

unsigned refusal_status(Refusal refusal);  // unreadable: 400
// The reason phrase of RFC 2326 section 7.1.1, as far as the proxy answers with it.
std::string_view status_text(unsigned status);
// "id" of "id;timeout=60".
std::string_view session_of(std::string_view value);
// Why one is refused that no DESCRIBE asked for.
inline constexpr const char* unmatched_description = "in an answer to another request than DESCRIBE";
// ANNOUNCE and RECORD: only servers send media.
bool is_refused_method(std::string_view method);
inline constexpr const char* back_channel_option = "www.onvif.org/ver20/backchannel";
bool wants_back_channel(const Message& request);
// The proxy's own answer; no CSeq when it is empty.
Message own_response(unsigned status, std::string_view cseq);
// Its body is a session description, by one of its types or by its first line that is not empty.
bool holds_description(const Message& message);

}  // namespace sluice::media::rtsp
