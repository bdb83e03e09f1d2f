#include "bench/updates.h"

#include <rte_cycles.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>
#include <thread>

#include "bench/progress.h"
#include "lookup/route_file.h"

namespace sluice::cli::bench {
namespace {

constexpr std::uint32_t metric = 7;
constexpr std::uint32_t protocol_bgp = 186;  // RTPROT_BGP
constexpr unsigned gateways = 254;

void spread_over_seconds(std::vector<Update>& updates) {
  for (std::size_t first = 0; first < updates.size();) {
    std::size_t end = first;
    while (end < updates.size() && updates[end].seconds == updates[first].seconds) {
      ++end;
    }
    if (updates[first].seconds == std::floor(updates[first].seconds)) {
      for (std::size_t i = first; i < end; ++i) {
        updates[i].seconds += static_cast<double>(i - first) / static_cast<double>(end - first);
      }
    }
    first = end;
  }
}

}  // namespace

Expected<std::vector<Update>> read_updates(const std::string& path) {
  const Progress progress("reading " + path);
  const auto list = lookup::read_updates(path);
  if (!list) {
    return tl::unexpected(list.error());
  }
  if (list->routes.empty()) {
    return make_error(path + ": has no updates");
  }
  std::vector<Update> updates;
  double before = list->routes.front().seconds;
  double elapsed = 0;
  for (const lookup::RouteLine& line : list->routes) {
    // A file put together of several may go back in time.
    elapsed += std::max(0.0, line.seconds - before);
    before = line.seconds;
    const bool announces = line.next_hop != lookup::no_route;
    updates.push_back(
        {line.prefix, announces ? static_cast<std::uint8_t>(1 + line.next_hop % gateways) : std::uint8_t{0}, elapsed});
  }
  spread_over_seconds(updates);
  return updates;
}

std::vector<Update> make_updates(std::size_t count, double per_second, std::uint64_t seed, RouterTable::Size size) {
  std::mt19937_64 random(seed);
  const std::size_t of_each = std::max<std::size_t>(count / 16, 16);
  lookup::RouteList pool = lookup::make_routes(of_each * 4 / 5, of_each / 5, seed + 1000);
  const lookup::RouteList table = lookup::make_routes(size.ipv4, size.ipv6, 1);
  for (std::size_t i = 0; i < of_each; ++i) {
    const bool ipv6 = i % 5 == 4;
    pool.routes.push_back(table.routes[ipv6 ? size.ipv4 + random() % size.ipv6 : random() % size.ipv4]);
  }
  std::vector<bool> there(pool.routes.size());
  std::vector<Update> updates;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = random() % pool.routes.size();
    const bool withdraw = there[at] && random() % 2 == 0;
    there[at] = !withdraw;
    updates.push_back({pool.routes[at].prefix,
                       withdraw ? std::uint8_t{0} : static_cast<std::uint8_t>(1 + random() % gateways),
                       static_cast<double>(i) / per_second});
  }
  return updates;
}

Expected<Pace> Pace::parse(const std::string& text) {
  if (text == "own") {
    return Pace{};
  }
  if (text == "max") {
    return Pace{Kind::most, 0};
  }
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, ec] = std::from_chars(text.data(), end, number);
  if (ec != std::errc() || stop != end || !(number > 0) || number > 1e9) {
    return make_error("--pace " + text + ": own, max, or updates per second");
  }
  return Pace{Kind::fixed, number};
}

Updater::Updater(function::RouteTable& table, std::vector<Update> updates, Pace pace)
    : table_(table), updates_(std::move(updates)), pace_(pace) {
  cost_us_.reserve(1 << 22);
}

double Updater::due(std::uint64_t number) const {
  switch (pace_.kind) {
    case Pace::Kind::most:
      return 0;
    case Pace::Kind::fixed:
      return static_cast<double>(number) / pace_.per_second;
    case Pace::Kind::own:
      break;
  }
  const double length = updates_.back().seconds + 1 / static_cast<double>(updates_.size());
  const std::uint64_t times = number / updates_.size();  // that the stream is over
  return static_cast<double>(times) * length + updates_[number % updates_.size()].seconds;
}

Expected<void> Updater::run(const std::function<bool()>& stop) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  Expected<void> done;
  while (done && !stop()) {
    if (due(next_) > clock_ + elapsed()) {
      std::this_thread::sleep_for(nap);
      continue;
    }
    done = apply(updates_[next_ % updates_.size()]);
    ++next_;
  }
  clock_ += elapsed();
  seconds_ += elapsed();
  return done;
}

Expected<void> Updater::apply(const Update& update) {
  const auto known = state_.find(update.prefix);
  const bool there = known != state_.end() && known->second != 0;
  if (update.gateway == 0 && !there) {
    ++unknown_;
    return {};
  }
  Expected<void> done;
  std::uint64_t begin = 0;
  if (update.gateway == 0) {
    begin = rte_rdtsc();
    done = table_.remove_route(update.prefix, metric);
  } else {
    const auto gateway = packet::IpAddress::parse(RouterTable::gateway(update.prefix.address.family, update.gateway));
    const function::Route route{update.prefix, function::RouteKind::unicast, {{0, *gateway, 1}}, metric, protocol_bgp};
    ++announced_;
    begin = rte_rdtsc();
    done = table_.add_route(route);
  }
  const std::uint64_t spent = rte_rdtsc() - begin;
  cost_us_.push_back(static_cast<float>(static_cast<double>(spent) * 1e6 / static_cast<double>(rte_get_tsc_hz())));
  state_[update.prefix] = update.gateway;
  return done;
}

}  // namespace sluice::cli::bench
