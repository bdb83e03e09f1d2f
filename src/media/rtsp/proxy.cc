#include "media/rtsp/proxy.h"

#include <algorithm>

#include "media/rtsp/proxy_text.h"
#include "media/rtsp/uri.h"
#include "media/text.h"

namespace sluice::media::rtsp {

namespace {

bool holds_description(const Message& message) {
  std::string_view type = message.header("Content-Type").value_or("");
  return !message.body().empty() && same_name(trim(take_until(type, ';')), "application/sdp");
}

Message own_response(unsigned status, std::string_view cseq) {
  Message response = Message::response(status, status_text(status));
  if (!cseq.empty()) {
    response.set_header("CSeq", cseq);
  }
  return response;
}

// "rtsp://x" in "url=rtsp://x;seq=1,url=...": with another authority.
std::string rtp_info_with_authority(std::string_view value, std::string_view from, std::string_view to) {
  std::string text;
  while (!value.empty()) {
    std::string_view entry = take_unquoted(value, ',');
    text += text.empty() ? "" : ",";
    for (bool first = true; !entry.empty(); first = false) {
      const std::string_view parameter = take_unquoted(entry, ';');
      constexpr std::string_view url = "url=";
      const std::size_t blanks = parameter.size() - std::min(parameter.size(), parameter.find_first_not_of(" \t"));
      const std::string_view bare = parameter.substr(parameter.size() - blanks);
      text += first ? "" : ";";
      text += same_name(bare.substr(0, url.size()), url)
                  ? std::string(url) + with_authority(bare.substr(url.size()), from, to)
                  : std::string(parameter);
    }
  }
  return text;
}

}  // namespace

std::string_view session_of(std::string_view value) {
  return trim(take_until(value, ';'));
}

Proxy::Proxy(const Settings& settings, Addresses addresses, Host& host, RandomSource random)
    : settings_(settings),
      addresses_(std::move(addresses)),
      host_(host),
      random_(std::move(random)),
      client_reader_(settings.reader),
      server_reader_(settings.reader) {}

Proxy::~Proxy() {
  end_all(EndReason::stopped, false);
}

bool Proxy::wants_client() const {
  return !over_ && pending_.size() < settings_.max_pending &&
         to_server_.size() + to_client_.size() < settings_.output_limit;
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
      message->is_request() ? client_request(*message, now) : client_response(*message);
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
      message->is_request() ? server_request(*message) : server_response(*message, now);
    } else if (std::holds_alternative<Frame>(item)) {
      ++counters_.interleaved_dropped;
    } else {
      break;
    }
  }
  if (server_reader_.problem() != Problem::none) {
    unreadable(server_reader_, false);
  } else {
    read_client(now);  // what waited for an answer to make room
  }
}

// What concerns every request; the pending one is there to be answered.
void Proxy::client_request(Message& request, Time now) {
  ++counters_.requests;
  const std::string_view cseq = request.header("CSeq").value_or("");
  const auto same_cseq = [cseq](const Pending& other) { return other.cseq == cseq && !other.answered; };
  const bool known = own_cseqs_.contains(cseq) || std::any_of(pending_.begin(), pending_.end(), same_cseq);
  const bool good = request.header_count("CSeq") == 1 && number<std::uint64_t>(cseq) && !known;
  Pending& pending = pending_.emplace_back();
  pending.cseq = cseq;
  pending.method = request.method();
  pending.uri = request.uri();
  pending.session = session_of(request.header("Session").value_or(""));
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
  if (request.method() == "ANNOUNCE" || request.method() == "RECORD") {
    return Refused{Refusal::method, std::string(request.method())};
  }
  if (holds_description(request)) {
    return Refused{Refusal::description_body, std::string(request.method())};
  }
  return std::nullopt;
}

void Proxy::forward(Message& request) {
  if (!addresses_.client_authority.empty()) {
    request.set_uri(with_authority(request.uri(), addresses_.client_authority, addresses_.server_authority));
  }
  to_server_.append(request.text().view());
}

void Proxy::client_response(const Message& response) {
  const auto asked = server_cseqs_.find(response.header("CSeq").value_or(""));
  if (asked == server_cseqs_.end()) {
    ++counters_.stray_responses;
    return;
  }
  if (response.status() >= 200) {
    server_cseqs_.erase(asked);
  }
  to_server_.append(response.text().view());
}

// Servers may ask their clients, too (RFC 2326 section 10); a description in clear must not pass.
void Proxy::server_request(Message& request) {
  ++counters_.server_requests;
  const std::string cseq(request.header("CSeq").value_or(""));
  const bool full = server_cseqs_.size() >= settings_.max_pending;
  if (full || cseq.empty() || request.method() == "ANNOUNCE" || holds_description(request)) {
    const unsigned status = full ? 503 : cseq.empty() ? 400 : 501;
    const Refusal refusal = cseq.empty() ? Refusal::cseq : full ? Refusal::busy : Refusal::description_body;
    to_server_.append(own_response(status, cseq).text().view());
    count_refused({refusal, "a request of the server"}, status);
    return;
  }
  server_cseqs_.insert(cseq);
  if (!addresses_.client_authority.empty()) {
    request.set_uri(with_authority(request.uri(), addresses_.server_authority, addresses_.client_authority));
  }
  fix_uris(request);
  to_client_.append(request.text().view());
}

void Proxy::server_response(Message& response, Time now) {
  ++counters_.responses;
  const std::string_view cseq = response.header("CSeq").value_or("");
  const auto pending = std::find_if(pending_.begin(), pending_.end(),
                                    [cseq](const Pending& one) { return one.cseq == cseq && !one.answered; });
  if (pending == pending_.end()) {
    if (const auto own = own_cseqs_.find(cseq); own != own_cseqs_.end()) {
      own_cseqs_.erase(own);
    } else {
      ++counters_.stray_responses;
    }
    return;
  }
  fix_uris(response);
  if (response.status() < 200) {
    pending->answer.append(response.text().view());
  } else if (pending->setup) {
    setup_response(response, *pending, now);
  } else if (pending->method == "DESCRIBE" && response.status() < 300) {
    describe_response(response, *pending);
  } else {
    teardown_response(response, *pending);
    answer(*pending, response);
  }
  flush_answers();
}

void Proxy::describe_response(Message& response, Pending& pending) {
  std::string_view type = response.header("Content-Type").value_or("");
  const std::string_view encoding = response.header("Content-Encoding").value_or("identity");
  if (!same_name(trim(take_until(type, ';')), "application/sdp") || !same_name(encoding, "identity")) {
    refuse(pending, {Refusal::description, "it is not application/sdp, or it is packed"});
    return;
  }
  Origin origin;
  origin.base = pending.uri;
  for (const char* const name : {"Content-Location", "Content-Base"}) {
    origin.base = response.header(name).value_or(origin.base);
  }
  origin.ipv6 = addresses_.client.family == 6;
  origin.unix_seconds = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count());
  origin.server_authority = addresses_.server_authority;
  origin.client_authority = addresses_.client_authority;
  auto offered = secure_description(response.body(), origin, random_, settings_.offer);
  if (!offered) {
    refuse(pending, {Refusal::description, offered.error().message});
    return;
  }
  ++counters_.descriptions;
  response.set_body(offered->description.view());
  descriptions_.push_back(std::move(offered->media));
  if (descriptions_.size() > settings_.max_descriptions) {
    const auto unused = [](const std::shared_ptr<Offer>& offer) { return !offer->used; };
    const auto& oldest = descriptions_.front();
    counters_.descriptions_forgotten += std::any_of(oldest.begin(), oldest.end(), unused) ? 1 : 0;
    descriptions_.pop_front();
  }
  answer(pending, response);
}

void Proxy::teardown_response(const Message& response, const Pending& pending) {
  if (pending.session.empty()) {
    return;
  }
  if (response.status() == 454) {
    end_streams(pending.session, EndReason::no_session);
    return;
  }
  if (pending.method != "TEARDOWN" || response.status() >= 300) {
    return;
  }
  const auto in_session = [&pending](const OpenStream& one) { return one.stream.session == pending.session; };
  const auto is_it = [&](const OpenStream& one) {
    return in_session(one) && same_resource(one.stream.uri, pending.uri) && !same_resource(one.aggregate, pending.uri);
  };
  const auto one = std::find_if(streams_.begin(), streams_.end(), is_it);
  if (one == streams_.end() || std::count_if(streams_.begin(), streams_.end(), in_session) == 1) {
    end_streams(pending.session, EndReason::teardown);
    return;
  }
  const std::uint64_t number = one->stream.number;
  streams_.erase(one);
  ++counters_.closed[static_cast<std::size_t>(EndReason::teardown)];
  host_.closed(number, EndReason::teardown);
}

// URIs of the server's that a client of an explicit proxy will use.
void Proxy::fix_uris(Message& response) const {
  const std::string& from = addresses_.server_authority;
  const std::string& to = addresses_.client_authority;
  if (from.empty()) {
    return;
  }
  for (const char* const name : {"Content-Base", "Content-Location", "Location"}) {
    if (const auto value = response.header(name)) {
      response.set_header(name, with_authority(*value, from, to));
    }
  }
  if (const auto value = response.header("RTP-Info")) {
    response.set_header("RTP-Info", rtp_info_with_authority(*value, from, to));
  }
}

void Proxy::refuse(Pending& pending, const Refused& refused) {
  const unsigned status = refusal_status(refused.refusal);
  Message response = own_response(status, pending.cseq);
  if (!pending.session.empty()) {
    response.set_header("Session", pending.session);
  }
  count_refused(refused, status);
  answer(pending, response);
}

void Proxy::count_refused(const Refused& refused, unsigned status) {
  ++counters_.refused[static_cast<std::size_t>(refused.refusal)];
  host_.refused(refused.refusal, status, refused.why);
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

void Proxy::heard(std::string_view session, Time now) {
  for (OpenStream& open : streams_) {
    if (open.stream.session == session) {
      open.heard = now;
    }
  }
}

void Proxy::alive(std::uint64_t number, Time now) {
  for (const OpenStream& open : streams_) {
    if (open.stream.number == number) {
      heard(open.stream.session, now);
      return;
    }
  }
}

void Proxy::tick(Time now) {
  while (!over_) {
    const auto late = std::find_if(streams_.begin(), streams_.end(), [this, now](const OpenStream& open) {
      return now - open.heard > open.timeout + settings_.grace;
    });
    if (late == streams_.end()) {
      return;
    }
    const std::string session = late->stream.session;
    tear_down(session, late->aggregate);
    end_streams(session, EndReason::timeout);
  }
}

void Proxy::end_streams(std::string_view session, EndReason reason) {
  std::vector<std::uint64_t> ended;
  std::erase_if(streams_, [&](const OpenStream& open) {
    const bool it = open.stream.session == session;
    if (it) {
      ended.push_back(open.stream.number);
    }
    return it;
  });
  for (const std::uint64_t number : ended) {
    ++counters_.closed[static_cast<std::size_t>(reason)];
    host_.closed(number, reason);
  }
}

void Proxy::end_all(EndReason reason, bool tell_server) {
  while (!streams_.empty()) {
    const std::string session = streams_.front().stream.session;
    if (tell_server) {
      tear_down(session, streams_.front().aggregate);
    }
    end_streams(session, reason);
  }
  for (Pending& pending : pending_) {
    if (pending.setup && !pending.answered) {
      setup_failed(pending, reason);
    }
  }
  descriptions_.clear();
}

// The proxy's own request; with a server that wants digests it fails, and the session times out there.
void Proxy::tear_down(std::string_view session, std::string_view uri) {
  std::string cseq;
  do {
    cseq = std::to_string(next_cseq_++);
  } while (std::any_of(pending_.begin(), pending_.end(), [&cseq](const Pending& one) { return one.cseq == cseq; }));
  own_cseqs_.insert(cseq);
  Message request =
      Message::request("TEARDOWN", with_authority(uri, addresses_.client_authority, addresses_.server_authority));
  request.set_header("CSeq", cseq);
  request.set_header("Session", session);
  to_server_.append(request.text().view());
}

void Proxy::unreadable(const Reader& reader, bool client) {
  if (client && pending_.size() < settings_.max_pending) {
    Pending& pending = pending_.emplace_back();
    pending.cseq = reader.failed_cseq();
    pending.answered = true;
    const unsigned status = problem_status(reader.problem());
    pending.answer.append(own_response(status, pending.cseq).text().view());
    count_refused({Refusal::unreadable, problem_name(reader.problem())}, status);
  }
  end_all(EndReason::protocol, true);
  for (Pending& pending : pending_) {
    if (!client && !pending.answered) {
      refuse(pending, {Refusal::server_unreadable, problem_name(reader.problem())});
    }
  }
  flush_answers();
  over_ = true;
}

void Proxy::client_closed() {
  if (!over_) {
    end_all(EndReason::client_gone, true);
    over_ = true;
  }
}

void Proxy::server_closed() {
  if (!over_) {
    end_all(EndReason::server_gone, false);
    over_ = true;
  }
}

}  // namespace sluice::media::rtsp
