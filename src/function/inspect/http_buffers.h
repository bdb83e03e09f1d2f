// The buffers of rules, from an HTTP transaction (flow/http/message.h): those that are whole at a point.
#pragma once

#include <string>
#include <string_view>

#include "flow/http/looks.h"
#include "flow/http/message.h"
#include "match/confirm/buffers.h"
#include "match/detect/detector.h"

namespace sluice::function {

// Of those only the `wanted` ones. `text` holds what has to be put together, and lives as long as the buffers are used.
void set_http_buffers(match::Buffers& buffers, match::Point point, const flow::http::Transaction& transaction,
                      match::BufferSet wanted, std::string& text);

// Whether a direction of a TCP stream that begins so is HTTP's: for rules on HTTP, before it is parsed.
using flow::http::looks_like_http;

}  // namespace sluice::function
