// What clients send, and the answers in their order.
#include "media/rtsp/proxy.h"

#include <algorithm>

#include "media/rtsp/proxy_text.h"
#include "media/rtsp/uri.h"
#include "media/text.h"

namespace sluice::media::rtsp {

std::uint64_t system_unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

Proxy::Proxy(const Settings& settings, Addresses addresses, Host& host, RandomSource random, UnixClock clock)
    : settings_(settings),
      addresses_(std::move(addresses)),
      host_(host),
      random_(std::move(random)),
      clock_(std::move(clock)),
      client_reader_(settings.reader),
      server_reader_(settings.reader) {}

Proxy::~Proxy() {
  end_all(EndReason::stopped, false);
}

void Proxy::from_client(std::string_view bytes, Time now) {
  if (!over_) {
    client_reader_.append(bytes);
    read_client(now);
  }
}

void Proxy::read_client(Time now) {
  while (!over_ && pending_.size() < settings_.max_pending) {
    Reader::Item item = client_reader_.next();
    if (auto* const message = std::get_if<Message>(&item)) {
      count_left_out(*message);
      message->is_request() ? client_request(*message, now) : client_response(*message);
      end_if_too_much_waits();
    } else if (std::holds_alternative<Frame>(item)) {
      ++counters_.interleaved_dropped;
    } else {
      break;
    }
  }
  if (!over_ && client_reader_.problem() != Problem::none) {
    unreadable(client_reader_, true);
  }
}

void Proxy::from_server(std::string_view bytes, Time now) {
  if (over_) {
    return;
  }
  server_reader_.append(bytes);
  while (!over_) {
    Reader::Item item = server_reader_.next();
    if (auto* const message = std::get_if<Message>(&item)) {
      count_left_out(*message);
      message->is_request() ? server_request(*message) : server_response(*message, now);
      end_if_too_much_waits();
      read_client(now);  // what waited until an answer freed its place
    } else if (std::holds_alternative<Frame>(item)) {
      ++counters_.interleaved_dropped;
    } else {
      break;
    }
  }
  if (!over_ && server_reader_.problem() != Problem::none) {
    unreadable(server_reader_, false);
  }
}

std::size_t Proxy::buffered() const {
  std::size_t bytes = to_client_.size() + to_server_.size();
  for (const Pending& one : pending_) {
    bytes += one.cseq.size() + one.method.size() + one.uri.size() + one.session.size() + one.answer.size();
  }
  for (const std::string& cseq : server_cseqs_) {
    bytes += cseq.size();
  }
  return bytes;
}

// A side that is read no more cannot help it: the answer that others wait for would come from there.
void Proxy::end_if_too_much_waits() {
  if (over_ || buffered() <= settings_.buffer_limit) {
    return;
  }
  ++counters_.overflows;
  end_all(EndReason::overflow, true);
  pending_.clear();
  over_ = true;
}

// What concerns every request; the pending one is there to be answered.
void Proxy::client_request(Message& request, Time now) {
  ++counters_.requests;
  const std::string cseq(request.header("CSeq").value_or(""));
  const std::vector<std::string_view> cseqs = request.values("CSeq");
  const bool agree = std::ranges::all_of(cseqs, [&](std::string_view one) { return one == cseq; });
  const bool good = agree && number<std::uint64_t>(cseq) && !awaited(cseq);
  if (agree && cseqs.size() > 1) {
    request.set_header("CSeq", cseq);
  }
  Pending& pending = pending_.emplace_back();
  pending.cseq = cseq;
  pending.method = request.method();
  pending.uri = request.uri();
  pending.session = session_of(request.header("Session").value_or(""));
  pending.asked = now;
  std::optional<Refused> refusal = good ? check(request) : Refused{Refusal::cseq, std::string(cseq)};
  if (!refusal) {
    heard(pending.session, now);
    if (request.method() == "DESCRIBE") {
      request.remove_header("Accept-Encoding");  // a description that is packed could not be changed
    } else if (request.method() == "SETUP") {
      refusal = setup_request(request, pending);
    }
  }
  if (refusal) {
    refuse(pending, *refusal);
    flush_answers();
  } else {
    forward(request);
  }
}

std::optional<Proxy::Refused> Proxy::check(const Message& request) const {
  if (!request.version().starts_with("1.")) {
    return Refused{Refusal::version, std::string(request.version())};
  }
  if (request.header_count("Proxy-Require") > 0) {
    return Refused{Refusal::proxy_require, std::string(*request.header("Proxy-Require"))};
  }
  // What clients send is opened nowhere: RTP that a client speaks would go on as it is, behind an answer of RTP/SAVP.
  if (wants_back_channel(request)) {
    return Refused{Refusal::back_channel, back_channel_option};
  }
  // Methods are capitals (RFC 2326 section 10); a server that takes "setup" for SETUP would play past this.
  const bool has_small = std::ranges::any_of(request.method(), [](char c) { return c >= 'a' && c <= 'z'; });
  if (has_small || is_refused_method(request.method())) {
    return Refused{Refusal::method, std::string(request.method())};
  }
  if (holds_description(request)) {
    return Refused{Refusal::description_body, std::string(request.method())};
  }
  return std::nullopt;
}

void Proxy::forward(Message& request) {
  request.remove_header("KeyMgmt");  // of any method: the server speaks in clear
  if (!addresses_.server_authority.empty()) {
    request.set_uri(to_authority(request.uri(), addresses_.server_authority));
  }
  to_server_.append(request.text().view());
}

void Proxy::client_response(Message& response) {
  const auto asked = server_cseqs_.find(response.header("CSeq").value_or(""));
  if (asked == server_cseqs_.end()) {
    ++counters_.unmatched_responses;
    return;
  }
  if (response.status() >= 200) {
    server_cseqs_.erase(asked);
  }
  response.remove_header("KeyMgmt");  // as of any request: the server speaks in clear
  to_server_.append(response.text().view());
}

void Proxy::refuse(Pending& pending, const Refused& refused) {
  const unsigned status = refusal_status(refused.refusal);
  Message response = own_response(status, pending.cseq);
  if (!pending.session.empty()) {
    response.set_header("Session", pending.session);
  }
  if (status == 551) {  // a client may ask again without it
    response.set_header("Unsupported", refused.why);
  }
  if (refused.refusal == Refusal::ports_in_use) {
    response.set_header("Retry-After", std::to_string(settings_.retry_after.count()));
  }
  count_refused(refused, status);
  answer(pending, response);
}

void Proxy::count_refused(const Refused& refused, unsigned status) {
  ++counters_.refused[static_cast<std::size_t>(refused.refusal)];
  host_.refused(refused.refusal, status, refused.why);
}

void Proxy::count_left_out(Omission omission, std::size_t count, std::string_view why) {
  counters_.left_out[static_cast<std::size_t>(omission)] += count;
  host_.left_out(omission, count, why);
}

void Proxy::count_left_out(const Message& message) {
  if (message.lines_left_out() > 0) {
    count_left_out(Omission::header_line, message.lines_left_out(), message.first_left_out());
  }
}

void Proxy::answer(Pending& pending, const Message& response) {
  pending.answer.append(response.text().view());
  pending.answered = true;
}

void Proxy::flush_answers() {
  while (!pending_.empty()) {
    Pending& first = pending_.front();
    to_client_.append(first.answer.view());
    first.answer.clear();
    if (!first.answered) {
      return;
    }
    pending_.pop_front();
  }
}

void Proxy::unreadable(const Reader& reader, bool client) {
  if (client && pending_.size() < settings_.max_pending) {
    Pending& pending = pending_.emplace_back();
    pending.cseq = reader.failed_cseq();
    pending.answered = true;
    const unsigned status = problem_status(reader.problem());
    pending.answer.append(own_response(status, pending.cseq).text().view());
    count_refused({Refusal::unreadable, reader.problem_text()}, status);
  }
  if (!client) {
    give_up(EndReason::protocol, {Refusal::server_unreadable, reader.problem_text()});
    return;
  }
  end_all(EndReason::protocol, true);
  flush_answers();
  over_ = true;
}

// Ends everything, and answers what waits for the server.
void Proxy::give_up(EndReason reason, const Refused& refused) {
  end_all(reason, true);
  for (Pending& pending : pending_) {
    if (!pending.answered) {
      refuse(pending, refused);
    }
  }
  flush_answers();
  over_ = true;
}

bool Proxy::awaited(std::string_view cseq) const {
  const auto is_it = [cseq](const Pending& one) { return one.cseq == cseq && !one.answered; };
  return std::find(unwanted_cseqs_.begin(), unwanted_cseqs_.end(), cseq) != unwanted_cseqs_.end() ||
         std::any_of(pending_.begin(), pending_.end(), is_it);
}

void Proxy::await_unwanted(std::string cseq) {
  unwanted_cseqs_.push_back(std::move(cseq));
  if (unwanted_cseqs_.size() > settings_.max_pending) {
    unwanted_cseqs_.pop_front();
  }
}

}  // namespace sluice::media::rtsp
