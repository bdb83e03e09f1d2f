// For tests of what people bring: databases with a control in front, and sections as files have them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "function/ipsec/ipsec_control.h"
#include "ipsec/sa.h"
#include "packet/headers.h"

namespace sluice::function::test {

// Of AES-128-CBC with SHA-1; `more`: further lines.
inline std::string sa_text(const std::string& direction, unsigned spi, const std::string& key = "aa",
                           const std::string& more = "") {
  const bool out = direction == "out";
  std::string cipher_key, auth_key;
  for (int i = 0; i < 16; ++i) cipher_key += key;
  for (int i = 0; i < 20; ++i) auth_key += key;
  return "direction = \"" + direction + "\"\nsource = \"192.0.2." + (out ? "1" : "2") + "\"\ndestination = \"192.0.2." +
         (out ? "2" : "1") + "\"\nspi = " + std::to_string(spi) + "\nproposal = \"aes128-sha1\"\nkey = \"" +
         cipher_key + "\"\nauth_key = \"" + auth_key + "\"\n" + more;
}

inline std::string policy_text(const std::string& direction, const std::string& far, const std::string& more = "") {
  const bool out = direction == "out";
  return "direction = \"" + direction + "\"\nsource = \"" + (out ? "10.1.0.0/24" : far) + "\"\ndestination = \"" +
         (out ? far : "10.1.0.0/24") + "\"\ntunnel_source = \"192.0.2." + (out ? "1" : "2") +
         "\"\ntunnel_destination = \"192.0.2." + (out ? "2" : "1") + "\"\n" + more;
}

inline ipsec::SaSettings sa(const std::string& direction, unsigned spi, const std::string& key = "aa",
                            const std::string& more = "") {
  auto read = read_sa_text(sa_text(direction, spi, key, more), "sa");
  EXPECT_TRUE(read) << (read ? "" : read.error().message);
  return read.value_or(ipsec::SaSettings{});
}

inline ipsec::Policy policy(const std::string& direction, const std::string& far, const std::string& more = "") {
  auto read = read_policy_text(policy_text(direction, far, more), "policy");
  EXPECT_TRUE(read) << (read ? "" : read.error().message);
  return read.value_or(ipsec::Policy{});
}

// What an IKE daemon brings has no name.
template <class T>
T of_a_daemon(T one) {
  one.name.clear();
  return one;
}

// Databases with capacity for 16 of each, of which people may have 10.
class WithControl : public testing::Test {
 protected:
  static constexpr std::size_t capacity = 16, most = 10;

  // A reload with this file; the sentence, or why not.
  std::string reload(const IpsecOptions& file) {
    const auto change = control_->reload(file);
    if (!change) return change.error().message;
    change->commit();
    return change->text;
  }
  // Packets of an inbound SA that are opened, and the last one's number.
  void receive(unsigned spi, std::uint32_t packets, std::uint64_t number) {
    const ipsec::View& view = *databases_.pin(0);
    const packet::IpAddress here = packet::IpAddress::parse("192.0.2.1").value();
    const std::uint32_t on_wire = packet::be32(spi);
    const ipsec::SadKey key =
        ipsec::sad_key(reinterpret_cast<const std::uint8_t*>(&on_wire), 4, here.bytes.data(), ipsec::Protocol::esp);
    ipsec::Sa* found = nullptr;
    view.find_sas({&key, 1}, &found);
    ASSERT_NE(found, nullptr) << spi;
    EXPECT_TRUE(found->window.accept(number));
    EXPECT_TRUE(view.count(*found, 0, packets, packets * 100));
    databases_.unpin(0);
  }
  ipsec::SaStatus status(unsigned spi, const std::string& destination = "192.0.2.1") const {
    const auto found = databases_.sa({packet::IpAddress::parse(destination).value(), spi, ipsec::Protocol::esp});
    EXPECT_TRUE(found) << spi;
    return found.value_or(ipsec::SaStatus{});
  }

  crypto::KeyTable keys_ = crypto::KeyTable::make(capacity, true).value();
  ipsec::Databases databases_{keys_, {.sas = capacity, .policies = capacity, .lanes = 1, .readers = 2}};
  std::unique_ptr<IpsecControl> control_ = IpsecControl::make(databases_, {.sas = most, .policies = most}).value();
};

}  // namespace sluice::function::test
