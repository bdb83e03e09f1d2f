// Requests over a FakeDatabase, for tests: what is asked and what comes back.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ipsec/xfrm/bytes_trial_test.h"
#include "ipsec/xfrm/fake_database.h"
#include "ipsec/xfrm/requests.h"

namespace sluice::ipsec::xfrm {

class XfrmRequests : public testing::Test {
 protected:
  static constexpr std::uint32_t port = 99;

  Answer ask(const Bytes& bytes, std::uint16_t type, std::uint16_t flags = NLM_F_REQUEST | NLM_F_ACK) {
    return requests_.handle(bytes.message(type, flags), port);
  }
  // The errno that answers, positive; of the only message.
  int error(const Bytes& bytes, std::uint16_t type, std::uint16_t flags = NLM_F_REQUEST | NLM_F_ACK) {
    const Answer answer = ask(bytes, type, flags);
    if (answer.messages.size() != 1 || answer.messages[0].type() != NLMSG_ERROR) return -1;
    return -at<nlmsgerr>(answer.messages[0].bytes()).error;
  }
  // The first message that answers a question.
  Message answer(const Bytes& bytes, std::uint16_t type) {
    Answer answer = ask(bytes, type, NLM_F_REQUEST);
    if (answer.messages.empty()) return {NLMSG_NOOP, 0, 0, 0};
    return std::move(answer.messages[0]);
  }

  static SaId id(const char* destination = "192.0.2.1", std::uint32_t spi = 0xc0000001) {
    return {packet::IpAddress::parse(destination).value(), spi, Protocol::esp};
  }
  std::uint32_t reserve() {
    xfrm_userspi_info asked{};
    asked.info = tunnel(0);
    asked.min = 0xc0000001;
    asked.max = 0xcfffffff;
    return ntohl(at<xfrm_usersa_info>(answer(Bytes::of(asked), XFRM_MSG_ALLOCSPI).bytes()).id.spi);
  }
  static Bytes aevent(const xfrm_usersa_info& info) {
    xfrm_aevent_id event{};
    event.sa_id = id_of(info);
    event.flags = XFRM_AE_RVAL;
    return Bytes::of(event);
  }
  std::size_t dumped(const Bytes& bytes, std::uint16_t type) {
    Answer answer = ask(bytes, type, NLM_F_REQUEST | NLM_F_DUMP);
    std::size_t count = 0;
    while (auto next = answer.dump ? answer.dump() : std::nullopt) {
      if (next->type() == NLMSG_DONE) {
        EXPECT_FALSE(answer.dump());
        return count;
      }
      ++count;
    }
    ADD_FAILURE() << "a dump without an end";
    return count;
  }

  std::uint64_t now_ = 1000;
  std::vector<std::string> log_;
  FakeDatabase database_;
  Requests requests_{database_,
                     {.is_local = [](const packet::IpAddress& address) { return address.str() == "192.0.2.1"; },
                      .log = [this](const std::string& line) { log_.push_back(line); },
                      .now = [this] { return now_; }}};
};

}  // namespace sluice::ipsec::xfrm
