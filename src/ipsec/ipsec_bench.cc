// Lookups and changes at 1, 1 K and 100 K policies and SAs. Lookups are in bursts of 32, as lanes look. DPDK's tables
// do the same, to compare with. Also of one SA: its window, its numbers and its counts.
//
//   policies/N/6        N road warriors, of IPv4 or IPv6: one tuple
//   tuples/N/F/C        N tables of ten policies each. Packets are of F flows; the last table has their policy
//   odd/N/F/C           N policies, each of a mask of its own
//   sas/N               inbound SAs, and what their windows begin with; by rte_hash (lock-free readers) and by
//                       rte_ipsec_sad (no lock at all), too
//   *_change/N          one policy, or one SA in both directions with its keys, comes and goes
//   .../threads:N       N lanes with one SA
#include <benchmark/benchmark.h>
#include <rte_hash.h>
#include <rte_ipsec_sad.h>
#include <rte_jhash.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ipsec/databases.h"
#include "ipsec/ipsec_trial_test.h"
#include "ipsec/sa_record.h"
#include "lookup/bench_eal.h"
#include "packet/headers.h"

namespace sluice::ipsec {
namespace {

constexpr std::size_t burst = 32, looked_at = 1U << 16;
constexpr std::string_view here = "192.0.2.1";

void need(const Expected<void>& done) {
  if (done) return;
  std::fprintf(stderr, "ipsec_bench: %s\n", done.error().message.c_str());
  std::exit(1);
}

packet::IpAddress host(std::uint32_t number, bool ipv6 = false) {
  packet::IpAddress address = packet::IpAddress::v4(0x0a000000 + number);
  if (!ipv6) return address;
  std::memcpy(&address.bytes[12], address.bytes.data(), 4);
  address.family = 6;
  return address;
}
packet::IpAddress gateway(std::uint32_t number) {
  return packet::IpAddress::v4(0xc6120000 + number);
}

Policy road_warrior(std::uint32_t number, bool ipv6 = false) {
  const Template with{.protocol = Protocol::esp,
                      .mode = Mode::tunnel,
                      .source = test::ip(here),
                      .destination = gateway(number),
                      .reqid = number + 1};
  const Selector one{test::prefix(ipv6 ? "::/0" : "0.0.0.0/0"), packet::IpPrefix::host(host(number, ipv6)), 0, {}, {}};
  return test::protecting(Direction::out, one, 100, with);
}

SaSettings sa_of(std::uint32_t number, Direction direction, std::uint32_t spi) {
  SaSettings settings = test::sa(direction, here, here, spi, number + 1);
  (direction == Direction::in ? settings.source : settings.id.destination) = gateway(number);
  return settings;
}

struct World {
  explicit World(std::size_t capacity)
      : keys(crypto::KeyTable::make(static_cast<std::uint32_t>(2 * capacity + 64), false).value()),
        databases(keys, {.sas = 2 * capacity + 64, .policies = capacity + 64, .lanes = 8, .readers = 8 * 33}) {}
  ~World() {
    for (std::size_t reader = 0; reader < 8; ++reader) databases.unpin(reader);
  }
  crypto::KeyTable keys;
  Databases databases;
};

std::vector<std::uint32_t> random_numbers(std::size_t below) {
  std::mt19937 random(5);
  std::vector<std::uint32_t> numbers(looked_at);
  for (std::uint32_t& number : numbers) number = static_cast<std::uint32_t>(random() % below);
  return numbers;
}

void find_policies(benchmark::State& state, const View& view, const std::vector<PacketKey>& keys, bool cached) {
  PolicyCache cache;
  std::array<const PolicyEntry*, burst> found{};
  std::size_t at = 0;
  for (auto _ : state) {
    view.find_policies(Direction::out, std::span(keys).subspan(at, burst), found.data(), cached ? &cache : nullptr);
    benchmark::DoNotOptimize(found.data());
    benchmark::ClobberMemory();
    at = (at + burst) % keys.size();
  }
  if (found[0] == nullptr) state.SkipWithError("no policy was found");
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * burst));
}

void policies(benchmark::State& state) {
  const auto count = static_cast<std::uint32_t>(state.range(0));
  World world(count);
  const bool ipv6 = state.range(1) == 6;
  for (std::uint32_t i = 0; i < count; ++i) need(world.databases.add(road_warrior(i, ipv6), false));
  std::vector<PacketKey> keys;
  for (const std::uint32_t number : random_numbers(count)) {
    keys.push_back(packet_key({host(7, ipv6), host(number, ipv6), 17, true, static_cast<std::uint16_t>(number), 53}));
  }
  find_policies(state, *world.databases.pin(0), keys, false);
}
BENCHMARK(policies)->ArgsProduct({{1, 1000, 100'000}, {4, 6}});

// Policies of as many masks, `each` of each, that no packet has; and one that all have.
void many_masks(benchmark::State& state, std::uint32_t each) {
  const auto count = static_cast<std::uint32_t>(state.range(0)), flows = static_cast<std::uint32_t>(state.range(1));
  World world(each * count);
  for (std::uint32_t i = 0; i + 1 < count; ++i) {
    for (std::uint32_t one = 0; one < each; ++one) {
      Selector odd{packet::IpPrefix::of(packet::IpAddress::v4(0xac100000 + (one << 20)), 12 + i % 20),
                   packet::IpPrefix::of(packet::IpAddress::v4(0xac110000), 12 + i / 20 % 20),
                   0,
                   {},
                   {}};
      need(world.databases.add(test::bypassing(Direction::out, odd, i), false));
    }
  }
  for (std::uint32_t one = 0; one < each; ++one) {
    const Selector all{
        packet::IpPrefix::of(packet::IpAddress::v4((10 + one) << 24), 8), test::prefix("0.0.0.0/0"), 0, {}, {}};
    need(world.databases.add(test::bypassing(Direction::out, all, 1U << 30), false));
  }
  std::vector<PacketKey> keys;
  for (const std::uint32_t number : random_numbers(flows)) {
    keys.push_back(packet_key({host(number), host(number ^ 1), 17, true, static_cast<std::uint16_t>(number), 53}));
  }
  find_policies(state, *world.databases.pin(0), keys, state.range(2) != 0);
}
void tuples(benchmark::State& state) {
  many_masks(state, 10);
}
void odd(benchmark::State& state) {
  many_masks(state, 1);
}
BENCHMARK(tuples)->ArgsProduct({{1, 2, 3, 4, 8, 32}, {1000, 60'000}, {0, 1}});
BENCHMARK(odd)->ArgsProduct({{1, 8, 16, 32, 64, 300}, {1000, 60'000}, {0, 1}});

std::vector<SadKey> keys_of_sas(std::uint32_t count) {
  std::vector<SadKey> keys;
  const packet::IpAddress address = test::ip(here);
  for (const std::uint32_t number : random_numbers(count)) {
    const std::uint32_t spi = packet::be32(0x1000 + number);
    keys.push_back(sad_key(reinterpret_cast<const std::uint8_t*>(&spi), 4, address.bytes.data(), Protocol::esp));
  }
  return keys;
}

struct Sas : World {
  explicit Sas(std::uint32_t count) : World(count), keys(keys_of_sas(count)), view(*databases.pin(0)) {
    for (std::uint32_t i = 0; i < count; ++i) need(databases.add(sa_of(i, Direction::in, 0x1000 + i)));
  }
  const std::vector<SadKey> keys;
  const View& view;
};

// What a lane does next with what it has found.
void ask(const std::array<Sa*, burst>& found, bool prefetched) {
  for (Sa* const sa : found) {
    if (!prefetched) prefetch(sa, 192);
  }
  for (Sa* const sa : found) {
    benchmark::DoNotOptimize(sa->window.may_be_new(7) && sa->outer.load(std::memory_order_acquire)->udp);
  }
}

void sas(benchmark::State& state) {
  Sas world(static_cast<std::uint32_t>(state.range(0)));
  const std::vector<SadKey>& keys = world.keys;
  std::array<Sa*, burst> found{};
  std::size_t at = 0;
  for (auto _ : state) {
    world.view.find_sas(std::span(keys).subspan(at, burst), found.data());
    ask(found, true);
    at = (at + burst) % keys.size();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * burst));
}
BENCHMARK(sas)->Arg(1)->Arg(1000)->Arg(100'000);

void sas_rte_hash(benchmark::State& state) {
  lookup::start_bench_eal();
  const auto count = static_cast<std::uint32_t>(state.range(0));
  rte_hash_parameters parameters{};
  parameters.name = "ipsec_bench";
  parameters.entries = 2 * count + 64;
  parameters.key_len = sizeof(SadKey);
  parameters.hash_func = rte_jhash;
  parameters.socket_id = SOCKET_ID_ANY;
  parameters.extra_flag = RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF;
  rte_hash* const table = rte_hash_create(&parameters);
  Sas world(count);
  const std::vector<SadKey>& keys = world.keys;
  for (const SadKey& key : keys) {
    Sa* sa = nullptr;
    world.view.find_sas({&key, 1}, &sa);
    if (table == nullptr || rte_hash_add_key_data(table, &key, sa) != 0) {
      state.SkipWithError("rte_hash is full");
      return;
    }
  }
  std::array<const void*, burst> pointers{};
  std::array<Sa*, burst> found{};
  std::size_t at = 0;
  std::uint64_t hits = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i < burst; ++i) pointers[i] = &keys[at + i];
    rte_hash_lookup_bulk_data(table, pointers.data(), burst, &hits, reinterpret_cast<void**>(found.data()));
    ask(found, false);
    at = (at + burst) % keys.size();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * burst));
  rte_hash_free(table);
}
BENCHMARK(sas_rte_hash)->Arg(1)->Arg(1000)->Arg(100'000);

void sas_rte_ipsec_sad(benchmark::State& state) {
  lookup::start_bench_eal();
  const auto count = static_cast<std::uint32_t>(state.range(0));
  rte_ipsec_sad_conf conf{};
  conf.socket_id = SOCKET_ID_ANY;
  for (std::uint32_t& most : conf.max_sa) most = 2 * count + 64;
  rte_ipsec_sad* const table = rte_ipsec_sad_create("ipsec_bench", &conf);
  Sas world(count);
  std::vector<rte_ipsec_sad_key> keys(looked_at);
  const std::vector<std::uint32_t> numbers = random_numbers(count);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i].v4 = {.spi = packet::be32(0x1000 + numbers[i]), .dip = 0x010200c0, .sip = 0};
    Sa* sa = nullptr;
    world.view.find_sas({&world.keys[i], 1}, &sa);
    rte_ipsec_sad_add(table, &keys[i], RTE_IPSEC_SAD_SPI_DIP, sa);
  }
  std::array<const rte_ipsec_sad_key*, burst> pointers{};
  std::array<Sa*, burst> found{};
  std::size_t at = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i < burst; ++i) pointers[i] = &keys[at + i];
    rte_ipsec_sad_lookup(table, pointers.data(), reinterpret_cast<void**>(found.data()), burst);
    ask(found, false);
    at = (at + burst) % keys.size();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * burst));
  rte_ipsec_sad_destroy(table);
}
BENCHMARK(sas_rte_ipsec_sad)->Arg(1)->Arg(1000)->Arg(100'000);

void policy_change(benchmark::State& state) {
  const auto count = static_cast<std::uint32_t>(state.range(0));
  World world(count);
  for (std::uint32_t i = 0; i < count; ++i) need(world.databases.add(road_warrior(i), false));
  std::uint32_t number = 0;
  for (auto _ : state) {
    number = (number * 2654435761U + 1) % count;
    world.databases.remove_policy(Direction::out, road_warrior(number).selector);
    need(world.databases.add(road_warrior(number), false));
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * 2));
}
BENCHMARK(policy_change)->Arg(1)->Arg(1000)->Arg(100'000);

void rekey(benchmark::State& state) {
  const auto count = static_cast<std::uint32_t>(state.range(0));
  World world(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    need(world.databases.add(road_warrior(i), false));
    need(world.databases.add(sa_of(i, Direction::in, 0x1000 + i)));
    need(world.databases.add(sa_of(i, Direction::out, 0x1000 + i)));
  }
  std::vector<std::uint32_t> spis(count);
  for (std::uint32_t i = 0; i < count; ++i) spis[i] = 0x1000 + i;
  std::uint32_t number = 0, last = 0x1000000;
  for (auto _ : state) {
    number = (number * 2654435761U + 1) % count;
    const std::uint32_t before = std::exchange(spis[number], ++last);
    for (const Direction direction : {Direction::in, Direction::out}) {
      need(world.databases.add(sa_of(number, direction, last)));
      world.databases.remove(sa_of(number, direction, before).id);
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * 4));
}
BENCHMARK(rekey)->Arg(1)->Arg(1000)->Arg(50'000);

void tick(benchmark::State& state) {
  const auto count = static_cast<std::uint32_t>(state.range(0));
  World world(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    SaSettings settings = sa_of(i, Direction::in, 0x1000 + i);
    settings.lifetime.seconds = {.soft = 3000, .hard = 3600};
    need(world.databases.add(settings));
  }
  auto now = std::chrono::steady_clock::now();
  for (auto _ : state) world.databases.tick(now += std::chrono::microseconds(1));
}
BENCHMARK(tick)->Arg(1)->Arg(100'000);

void pin(benchmark::State& state) {
  World world(1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(world.databases.pin(0));
    world.databases.unpin(0);
  }
}
BENCHMARK(pin);

// One SA that lanes authenticate packets of: numbers in order, taken in turns.
ReplayWindow shared_window(1024);
std::atomic<std::uint64_t> next_number{1};
void window_accept_run(benchmark::State& state) {
  std::array<std::uint64_t, burst> numbers{};
  std::array<bool, burst> accepted{};
  for (auto _ : state) {
    const std::uint64_t first = next_number.fetch_add(burst, std::memory_order_relaxed);
    for (std::size_t i = 0; i < burst; ++i) numbers[i] = first + i;
    shared_window.accept_run(numbers, accepted.data());
    benchmark::DoNotOptimize(accepted.data());
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * burst));
}
BENCHMARK(window_accept_run)->UseRealTime()->Threads(1)->Threads(2)->Threads(8);

void window_accept(benchmark::State& state) {
  ReplayWindow window(1024);
  std::uint64_t number = 0;
  for (auto _ : state) {
    ++number;
    benchmark::DoNotOptimize(window.may_be_new(number));
    benchmark::DoNotOptimize(window.accept(number));
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}
BENCHMARK(window_accept);

Sequence shared_sequence;
void take_numbers(benchmark::State& state) {
  const auto run = static_cast<std::uint32_t>(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(shared_sequence.take(run, true));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * run);
}
BENCHMARK(take_numbers)->Arg(1)->Arg(32)->UseRealTime()->Threads(1)->Threads(2)->Threads(8);

// Lanes that count packets of one SA; with a hard limit by shares.
void count_packets(benchmark::State& state) {
  static std::unique_ptr<World> world;
  static Sa* one = nullptr;
  if (state.thread_index() == 0) {
    world = std::make_unique<World>(1);
    SaSettings settings = sa_of(0, Direction::in, 0x1000);
    if (state.range(0) != 0) settings.lifetime.bytes.hard = settings.lifetime.packets.hard = 1ULL << 60;
    need(world->databases.add(settings));
    const SadKey key = keys_of_sas(1).front();
    world->databases.pin(0)->find_sas({&key, 1}, &one);
  }
  const View* view = nullptr;
  for (auto _ : state) {
    if (view == nullptr) view = world->databases.pin(static_cast<std::size_t>(state.thread_index()));
    benchmark::DoNotOptimize(view->count(*one, static_cast<std::uint32_t>(state.thread_index()), 1, 1400));
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}
BENCHMARK(count_packets)->Arg(0)->Arg(1)->UseRealTime()->Threads(1)->Threads(2)->Threads(8);

}  // namespace
}  // namespace sluice::ipsec
