// Streams of route updates for a running router, and what applies them at a pace.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/router_rig.h"
#include "function/route/route_table.h"

namespace sluice::cli::bench {

struct Update {
  packet::IpPrefix prefix;
  std::uint8_t gateway = 0;  // 1 to 254, of router_rig.h's; 0: withdrawn
  double seconds = 0;        // since the first of the stream
};

// From a file as lookup::read_updates takes it. Its next hops become gateways of ours, the same for the same one; the
// updates of one second are spread over it evenly, because bgpdump often writes whole seconds.
Expected<std::vector<Update>> read_updates(const std::string& path);

// Made up: half of them about prefixes of the RouterTable of that size, half about others; announced, given
// another gateway, withdrawn; one family in five is IPv6. At `per_second`. The same arguments give the same stream.
std::vector<Update> make_updates(std::size_t count, double per_second, std::uint64_t seed, RouterTable::Size size = {});

// How fast: as the stream says, so many per second, or without a pause.
struct Pace {
  enum class Kind { own, fixed, most } kind = Kind::own;
  double per_second = 0;
  // "own", "max" or a number above 0.
  static Expected<Pace> parse(const std::string& text);
};

// Applies a stream to a table, round and round, as routes of metric 7, which come before those of the file.
//
// Thread-safety: one thread; the table is the running router's.
class Updater {
 public:
  static constexpr auto nap = std::chrono::microseconds(200);  // between two looks at the clock
  Updater(function::RouteTable& table, std::vector<Update> updates, Pace pace);

  // Those that fall due from now on until `stop` answers true. An Error of the table ends it.
  Expected<void> run(const std::function<bool()>& stop);

  std::uint64_t applied() const { return cost_us_.size(); }
  std::uint64_t announced() const { return announced_; }
  std::uint64_t unknown() const { return unknown_; }              // withdrawals of what was not there: nothing to do
  double seconds() const { return seconds_; }                     // in run()
  const std::vector<float>& cost_us() const { return cost_us_; }  // of each that changed the table
  // What it has announced last and not withdrawn since; gateway 0: withdrawn.
  const std::map<packet::IpPrefix, std::uint8_t>& state() const { return state_; }

 private:
  double due(std::uint64_t number) const;  // seconds after the first, of the number-th update
  Expected<void> apply(const Update& update);

  function::RouteTable& table_;
  std::vector<Update> updates_;
  Pace pace_;
  std::uint64_t next_ = 0;
  double clock_ = 0;  // of the stream, which stands still between runs
  std::uint64_t announced_ = 0, unknown_ = 0;
  double seconds_ = 0;
  std::vector<float> cost_us_;
  std::map<packet::IpPrefix, std::uint8_t> state_;
};

}  // namespace sluice::cli::bench
