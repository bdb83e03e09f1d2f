// How long sessions live, and how they end.
#include <algorithm>
#include <string>
#include <string_view>

#include "media/rtsp/proxy.h"
#include "media/rtsp/uri.h"

namespace sluice::media::rtsp {
namespace {

// A server's text as one word of a request line: what would end it is percent-encoded (RFC 3986, 2.1).
std::string one_word(std::string_view uri) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string word;
  for (const char c : uri) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte != 0x7F) {
      word += c;
    } else {
      word += {'%', digits[byte / 16], digits[byte % 16]};
    }
  }
  return word;
}

}  // namespace

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
  end_unanswered(now);
  while (!over_) {
    const auto late = std::find_if(streams_.begin(), streams_.end(), [this, now](const OpenStream& open) {
      return now - open.heard > open.timeout + settings_.grace;
    });
    if (late == streams_.end()) {
      break;
    }
    const std::string session = late->stream.session;
    tear_down(session, late->aggregate);
    end_streams(session, EndReason::timeout);
  }
  end_if_too_much_waits();
}

// A SETUP ends both connections: what the server may agree to yet could not be protected.
void Proxy::end_unanswered(Time now) {
  const auto late = [&](const Pending& one) { return !one.answered && now - one.asked > settings_.answer_timeout; };
  if (std::any_of(pending_.begin(), pending_.end(), [&](const Pending& one) { return late(one) && one.setup; })) {
    give_up(EndReason::unanswered, {Refusal::unanswered, {}});
    return;
  }
  for (Pending& pending : pending_) {
    if (late(pending)) {
      await_unwanted(pending.cseq);
      refuse(pending, {Refusal::unanswered, pending.method});
    }
  }
  flush_answers();
  read_client(now);  // what waited until an answer freed its place
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

// Players close without waiting for the answer to their TEARDOWN. One of a medium the server may refuse, and would send
// on: then it is asked for all of the session as well.
void Proxy::end_asked(bool notify_server) {
  for (const Pending& pending : pending_) {
    const auto of_session = std::ranges::find(
        streams_, pending.session, [](const OpenStream& one) -> const std::string& { return one.stream.session; });
    if (pending.method != "TEARDOWN" || pending.answered || of_session == streams_.end()) continue;
    const std::string aggregate = of_session->aggregate;
    torn_down(pending.session, pending.uri);
    const bool is_left =
        std::ranges::any_of(streams_, [&](const OpenStream& one) { return one.stream.session == pending.session; });
    if (notify_server && !is_left && !same_resource(pending.uri, aggregate)) tear_down(pending.session, aggregate);
  }
}

void Proxy::end_all(EndReason reason, bool notify_server) {
  end_asked(notify_server);
  while (!streams_.empty()) {
    const std::string session = streams_.front().stream.session;
    if (notify_server) {
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
  } while (awaited(cseq));
  await_unwanted(cseq);
  const std::string& server = addresses_.server_authority;
  Message request =
      Message::request("TEARDOWN", one_word(server.empty() ? std::string(uri) : to_authority(uri, server)));
  request.set_header("CSeq", cseq);
  if (!session.empty()) {  // some servers name none
    request.set_header("Session", session);
  }
  to_server_.append(request.text().view());
}

// As far as the server is concerned, whatever ends it.
void Proxy::client_ended(EndReason reason) {
  if (!over_) {
    end_all(reason, true);
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
