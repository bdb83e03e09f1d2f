// Which patterns are in the buffers of an HTTP transaction. Each buffer is searched once, for the rules of all points,
// and of a body what is new; what was found is in the messages' marks (flow/http/message.h).
//
// Bounded: what is beyond the packet's allowance (PacketBudget) is part of its time, and what there is no time for is
// left.
//
// Thread-safety: none, of one lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "flow/http/message.h"
#include "function/inspect/payload_search.h"

namespace sluice::function {

class HttpSearch {
 public:
  HttpSearch(InspectionEnvironment& env, PayloadSearch& search) : env_(env), search_(search) {}

  // The patterns of a point's rules, into InspectionSearch::found: how many. `grows`: the point is of a body that has
  // more bytes now. `buffers` are set where something had to be searched but bodies; `text` is as set_http_buffers()
  // has it.
  std::size_t search(PacketContext& context, match::Point point, bool grows, flow::http::Transaction& transaction,
                     match::Buffers& buffers, std::string& text);
  // By the rules in force.
  flow::http::Marks& marks_of(flow::http::Message& message);
  // All but the body is searched again: it has trailers now.
  void begin_again(flow::http::Message& message);

 private:
  bool search_buffer(PacketContext& context, match::Buffer buffer, std::string_view bytes, flow::http::Marks& marks);
  void search_body(PacketContext& context, match::BufferSet bodies, bool grows, flow::http::Message& message);
  void list(std::uint32_t number);
  void mark_found(flow::http::Marks& marks, std::uint32_t number);
  void add_found(const flow::http::Marks& marks);

  InspectionEnvironment& env_;
  PayloadSearch& search_;
};

}  // namespace sluice::function
