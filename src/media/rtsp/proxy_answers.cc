// What servers send.
#include <algorithm>

#include "base/quote.h"
#include "media/rtsp/proxy.h"
#include "media/rtsp/proxy_text.h"
#include "media/rtsp/uri.h"
#include "media/text.h"

namespace sluice::media::rtsp {

namespace {

constexpr std::string_view sdp_type = "application/sdp";

// "rtsp://x" in "url=rtsp://x;seq=1,url=...": with another authority.
std::string rtp_info_to_authority(std::string_view value, std::string_view to) {
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
                  ? std::string(url) + rtsp_to_authority(bare.substr(url.size()), to)
                  : std::string(parameter);
    }
  }
  return text;
}

// Without what some servers put around it.
std::string_view bare_uri(std::string_view value) {
  const bool angles = value.size() >= 2 && value.front() == '<' && value.back() == '>';
  return trim(angles ? value.substr(1, value.size() - 2) : without_quotes(value));
}

// What the proxy refuses of clients is not offered to them (check() in proxy.cc).
void hide_methods(Message& response) {
  for (const char* const name : {"Public", "Allow"}) {
    const auto joined = response.joined(name);
    if (!joined) continue;
    std::string kept;
    bool hides = false;
    for (std::string_view methods = joined->view(); !methods.empty();) {
      const std::string_view method = trim(take_until(methods, ','));
      const bool refused = is_refused_method(method);
      hides = hides || refused;
      if (!refused && !method.empty()) kept.append(kept.empty() ? "" : ", ").append(method);
    }
    if (hides) response.set_header(name, kept);
  }
}

}  // namespace

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
  if (request.method() == "TEARDOWN") {
    torn_down(session_of(request.header("Session").value_or("")), request.uri());
  }
  if (!addresses_.client_authority.empty()) {
    request.set_uri(with_authority(request.uri(), addresses_.server_authority, addresses_.client_authority));
  }
  fix_uris(request, addresses_.client_authority);
  to_client_.append(request.text().view());
}

// The request that it answers. Some servers write no CSeq, or one that is no number or has more behind it ("3;"), and
// answer in order; some write always the same. Of a server that has not repeated two numbers yet an answer is that of
// the one request that waits. The client then reads the CSeq that it sent.
std::deque<Proxy::Pending>::iterator Proxy::asked_for(const Message& response) {
  const auto with_cseq = [this](std::string_view text) {
    return std::ranges::find_if(pending_, [text](const Pending& one) { return one.cseq == text && !one.answered; });
  };
  for (const std::string_view cseq : response.values("CSeq")) {
    if (const auto exact = with_cseq(cseq); exact != pending_.end()) {
      ++echoed_;
      return exact;
    }
  }
  if (!unwanted_cseqs_.empty()) return pending_.end();
  const std::string_view cseq = response.header("CSeq").value_or("");
  const std::string_view digits = cseq.substr(0, std::min(cseq.size(), cseq.find_first_not_of("0123456789")));
  const auto value = number<std::uint64_t>(digits);
  if (value) {
    const auto same = with_cseq(std::to_string(*value));
    const bool echoes = echoed_ > 1 || std::ranges::count(pending_, false, &Pending::answered) != 1;
    if (same != pending_.end() || echoes) return same;
  }
  return std::ranges::find(pending_, false, &Pending::answered);
}

void Proxy::server_response(Message& response, Time now) {
  ++counters_.responses;
  const auto pending = asked_for(response);
  if (pending == pending_.end()) {
    const auto unwanted = std::ranges::find(unwanted_cseqs_, response.header("CSeq").value_or(""));
    if (unwanted == unwanted_cseqs_.end()) {
      ++counters_.unmatched_responses;
    } else if (response.status() >= 200) {
      unwanted_cseqs_.erase(unwanted);
    }
    return;
  }
  if (response.header_count("CSeq") != 1 || response.header("CSeq") != pending->cseq) {
    response.set_header("CSeq", pending->cseq);
  }
  fix_uris(response, client_authority(pending->uri));
  hide_methods(response);
  if (response.status() < 200) {
    if (holds_description(response)) {
      count_refused({Refusal::description, unmatched_description}, refusal_status(Refusal::description));
    } else {
      pending->answer.append(response.text().view());
    }
  } else if (pending->setup) {
    setup_response(response, *pending, now);
  } else if (pending->method == "DESCRIBE" && response.status() < 300) {
    describe_response(response, *pending);
  } else {
    pass_answer(*pending, response);
  }
  if (response.status() == 454) {
    end_streams(pending->session, EndReason::no_session);
  } else if (pending->method == "TEARDOWN" && response.status() / 100 == 2) {
    torn_down(pending->session, pending->uri);
  }
  flush_answers();
}

// As it is, unless it has a description: that would be one of clear media.
void Proxy::pass_answer(Pending& pending, const Message& response) {
  if (holds_description(response)) {
    refuse(pending, {Refusal::description, unmatched_description});
  } else {
    answer(pending, response);
  }
}

void Proxy::describe_response(Message& response, Pending& pending) {
  Origin origin;
  std::string base = pending.uri;
  for (const char* const name : {"Content-Location", "Content-Base"}) {
    const std::string_view value = bare_uri(response.header(name).value_or(""));
    if (value.empty()) {
      response.remove_header(name);  // a player would ask for nothing by it
      continue;
    }
    origin.other_bases.push_back(base);
    origin.other_bases.emplace_back(value);
    base = resolved_uri(pending.uri, value);
    response.set_header(name, base);  // it may have been relative, or have had blanks around it
  }
  origin.base = base;
  origin.ipv6 = addresses_.client.family == 6;
  origin.unix_seconds = clock_();
  origin.server_authority = addresses_.server_authority;
  origin.client_authority = client_authority(pending.uri);
  origin.server = addresses_.server;
  origin.facing_client = addresses_.facing_client;
  auto offered = secure_description(response.body(), origin, random_, settings_.offer);
  const std::string encoding(response.header("Content-Encoding").value_or("identity"));
  const bool plain = encoding.empty() || same_name(encoding, "identity");
  if (!offered) {
    const bool packed = !plain && response.body().find("m=") == std::string_view::npos;
    refuse(pending, {Refusal::description,
                     packed ? "Content-Encoding: it is packed as " + in_quotes(encoding) : offered.error().message});
    return;
  }
  if (!plain) response.remove_header("Content-Encoding");  // it can be read: it is not packed
  ++counters_.descriptions;
  for (const bool medium : {true, false}) {
    const auto is_it = [medium](const sdp::LeftOut& one) { return one.medium == medium; };
    const auto first = std::ranges::find_if(offered->left_out, is_it);
    if (first == offered->left_out.end()) continue;
    count_left_out(medium ? Omission::medium : Omission::description_line,
                   static_cast<std::size_t>(std::ranges::count_if(offered->left_out, is_it)), first->why);
  }
  // Players may ask what it is; and whoever judges the answer next is to know.
  const std::string_view type = response.header("Content-Type").value_or("");
  if (response.header_count("Content-Type") != 1 || !same_name(trim(type.substr(0, type.find(';'))), sdp_type)) {
    response.set_header("Content-Type", sdp_type);
  }
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

// What the URI means: one medium, which is there more than once if it was set up again, or else all of the session.
void Proxy::torn_down(std::string_view session, std::string_view uri) {
  const auto is_it = [&](const OpenStream& one) {
    return one.stream.session == session && same_resource(one.stream.uri, uri) && !same_resource(one.aggregate, uri);
  };
  auto one = std::find_if(streams_.begin(), streams_.end(), is_it);
  if (one == streams_.end()) {
    end_streams(session, EndReason::teardown);
    return;
  }
  for (; one != streams_.end(); one = std::find_if(streams_.begin(), streams_.end(), is_it)) {
    const std::uint64_t number = one->stream.number;
    streams_.erase(one);
    ++counters_.closed[static_cast<std::size_t>(EndReason::teardown)];
    host_.closed(number, EndReason::teardown);
  }
}

// What the client of an explicit proxy calls it in this request.
std::string_view Proxy::client_authority(std::string_view uri) const {
  constexpr std::size_t longest = 261;  // a name of 255 and a port: an answer may have it in many places
  const std::string_view written = authority_of(uri);
  return written.empty() || written.size() > longest ? addresses_.client_authority : written;
}

// URIs of the server's that a client of an explicit proxy will use. What is to be asked for on this connection is the
// proxy's, by whatever name the server knows itself; another server is what a Location alone may name.
void Proxy::fix_uris(Message& message, std::string_view to) const {
  const std::string& from = addresses_.server_authority;
  if (from.empty()) {
    return;
  }
  for (const char* const name : {"Content-Base", "Content-Location"}) {
    if (const auto value = message.header(name)) {
      message.set_header(name, rtsp_to_authority(*value, to));
    }
  }
  if (const auto value = message.header("Location")) {
    message.set_header("Location", with_authority(*value, from, to));
  }
  if (const auto value = message.joined("RTP-Info")) {
    message.set_header("RTP-Info", rtp_info_to_authority(value->view(), to));
  }
}

}  // namespace sluice::media::rtsp
