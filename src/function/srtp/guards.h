// Which 5-tuples are guarded: those whose stream has ended, and of which nothing may go on in clear for a while
// (media_streams.h). Here is only who has to go first when there is no capacity for all.
//
// A client has a share of so many guards, so that one that opens and ends media as fast as it can pushes out its own
// and nobody else's. A client is an IPv4 address or, since a host has as many of IPv6 as it likes, the first 64 bits.
//
// Thread-safety: none. Cost: a few look-ups in trees, whatever their number, but for quiet(), which looks at all.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "function/srtp/media_frame.h"

namespace sluice::function {

class Guards {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit Guards(std::size_t share) : share_(share) {}

  // One that is not there yet. `stream`: as packets of it leave, or would. What has to go for it, if its client has its
  // share already: the client's oldest; the caller erases it.
  std::optional<MediaKey> add(const MediaKey& key, const MediaKey& stream, Time now);
  void erase(const MediaKey& key);                                    // if it is there
  const MediaKey& oldest() const { return by_age_.begin()->second; }  // there is one
  std::size_t size() const { return guards_.size(); }
  bool contains(const MediaKey& key) const { return guards_.contains(key); }

  // Those of which nothing has come for time_of(key); noted(key) counts what comes.
  template <typename TimeOf, typename Noted>
  std::vector<MediaKey> quiet(Time now, const TimeOf& time_of, const Noted& noted) {
    std::vector<MediaKey> all;
    for (auto& [key, guard] : guards_) {
      const std::uint64_t count = noted(key);
      if (count != guard.noted) {
        guard.noted = count;
        guard.since = now;
      }
      if (now - guard.since >= time_of(key)) all.push_back(key);
    }
    return all;
  }

 private:
  // Family, and the bits that distinguish one from another.
  using Client = std::pair<std::uint32_t, std::uint64_t>;
  struct Guard {
    std::uint64_t noted;
    Time since;  // that nothing has come
    std::uint64_t number;
    Client client;
  };
  static Client client_of(const MediaKey& stream);

  const std::size_t share_;
  std::uint64_t next_ = 0;
  std::unordered_map<MediaKey, Guard, MediaKeyHash> guards_;
  std::map<std::uint64_t, MediaKey> by_age_;           // by number
  std::map<Client, std::set<std::uint64_t>> clients_;  // their numbers
};

}  // namespace sluice::function
