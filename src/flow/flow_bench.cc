// What a packet costs in the flow table, in a stream and in HTTP: one lane, nothing else on the core.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "flow/conversations.h"
#include "flow/recorder.h"

namespace sluice::flow {
namespace {

using test::tcp;
constexpr Direction up = Direction::to_server;
constexpr Direction down = Direction::to_client;

void handshake(FlowTable& table, std::uint32_t client) {
  for (const Packet& packet :
       {tcp(client, 1000, up, tcp_syn, 100, 0), tcp(client, 1000, down, tcp_syn | tcp_ack, 500, 101),
        tcp(client, 1000, up, tcp_ack, 101, 501)}) {
    Direction direction{};
    Flow* const flow = table.find_or_make(packet, 0, direction);
    table.track(*flow, direction, packet, 0);
  }
}

// Packets of random flows out of `range(0)` established ones, in bursts of 32, as a lane would prefetch.
void find_and_track(benchmark::State& state) {
  const auto flows = static_cast<std::uint32_t>(state.range(0));
  FlowSettings settings;
  settings.capacity = flows;
  FlowTable table(settings);
  for (std::uint32_t i = 0; i < flows; ++i) {
    handshake(table, i);
  }
  constexpr std::size_t burst = 32;
  std::vector<Packet> packets(burst);
  std::vector<std::uint32_t> hashes(burst);
  std::uint64_t random = 1;
  for (auto _ : state) {
    for (std::size_t i = 0; i < burst; ++i) {
      random = random * 6364136223846793005U + 1442695040888963407U;
      packets[i] = tcp(static_cast<std::uint32_t>((random >> 32) * flows >> 32), 1000, up, tcp_ack, 101, 501);
      hashes[i] = table.hash(packets[i]);
      table.prefetch(hashes[i]);
    }
    for (const std::uint32_t hash : hashes) {
      table.prefetch_flow(hash);
    }
    for (std::size_t i = 0; i < burst; ++i) {
      Direction direction{};
      Flow* const flow = table.find_or_make(packets[i], hashes[i], 1, direction);
      benchmark::DoNotOptimize(table.track(*flow, direction, packets[i], 1));
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * burst));
}
BENCHMARK(find_and_track)->Arg(1000)->Arg(1'000'000);

void syn_flood(benchmark::State& state) {
  FlowSettings settings;
  settings.capacity = 1U << 20;
  FlowTable table(settings);
  std::uint64_t random = 1;
  for (auto _ : state) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const Packet syn =
        tcp(static_cast<std::uint32_t>(random >> 32), static_cast<std::uint16_t>(random >> 16), up, tcp_syn, 1, 0);
    Direction direction{};
    Flow* const flow = table.find_or_make(syn, 1, direction);
    table.track(*flow, direction, syn, 1);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}
BENCHMARK(syn_flood);

struct Nothing final : StreamSink {
  void data(Direction, const StreamData& data) override { benchmark::DoNotOptimize(data.window.data()); }
  void gap(Direction, std::uint64_t) override {}
  void closed(Direction) override {}
  void restarted(Direction) override {}
};

// Segments of 1,460 bytes in order, with a history of range(0) bytes.
void reassemble(benchmark::State& state) {
  BlockPool pool(1U << 20);
  StreamSettings settings;
  settings.depth = 0;
  settings.window = static_cast<std::uint32_t>(state.range(0));
  Reassembler reassembler(settings, pool);
  TcpStream stream;
  Nothing sink;
  Reassembler::begin(stream, up, 0);
  const std::string payload(1460, 'x');
  std::uint32_t sequence = 0;
  for (auto _ : state) {
    reassembler.feed(stream, up, tcp(1, 1, up, tcp_ack, sequence, 0, payload), sink);
    sequence += 1460;
  }
  reassembler.release(stream);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * 1460));
}
BENCHMARK(reassemble)->Arg(0)->Arg(2048);

// The same where bytes are kept until they are acknowledged, which every second segment is: range(0) segments later.
void reassemble_guarded(benchmark::State& state) {
  BlockPool pool(4U << 20);
  StreamSettings settings;
  settings.depth = 0;
  settings.drop_conflicts = settings.drop_without_capacity = true;
  Reassembler reassembler(settings, pool);
  TcpStream stream;
  Nothing sink;
  Reassembler::begin(stream, up, 0);
  Reassembler::begin(stream, down, 0);
  const std::string payload(1460, 'x');
  const auto flight = static_cast<std::uint32_t>(state.range(0) * 1460);
  std::uint32_t sequence = 0;
  for (auto _ : state) {
    reassembler.feed(stream, up, tcp(1, 1, up, tcp_ack, sequence, 0, payload), sink);
    sequence += 1460;
    if (sequence / 1460 % 2 == 0) {
      reassembler.feed(stream, down, tcp(1, 1, down, tcp_ack, 0, sequence - flight), sink);
    }
  }
  if (reassembler.counters().refused != 0) {
    state.SkipWithError("a segment was refused");
  }
  reassembler.release(stream);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * 1460));
}
BENCHMARK(reassemble_guarded)->Arg(0)->Arg(10)->Arg(100);

// Segments behind the depth, as most of a long transfer; range(0): guarded.
void reassemble_behind_depth(benchmark::State& state) {
  BlockPool pool(4U << 20);
  StreamSettings settings;
  settings.depth = 1460;
  settings.drop_conflicts = settings.drop_without_capacity = state.range(0) != 0;
  Reassembler reassembler(settings, pool);
  TcpStream stream;
  Nothing sink;
  Reassembler::begin(stream, up, 0);
  Reassembler::begin(stream, down, 0);
  const std::string payload(1460, 'x');
  std::uint32_t sequence = 0;
  for (auto _ : state) {
    reassembler.feed(stream, up, tcp(1, 1, up, tcp_ack, sequence, 0, payload), sink);
    sequence += 1460;
    if (sequence / 1460 % 2 == 0) {
      reassembler.feed(stream, down, tcp(1, 1, down, tcp_ack, 0, sequence), sink);
    }
  }
  reassembler.release(stream);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}
BENCHMARK(reassemble_behind_depth)->Arg(0)->Arg(1);

struct Ignore final : http::TransactionSink {
  void transaction(http::Connection&, http::Event, http::Transaction&) override {}
  void stopped(http::Connection&, http::StopReason) override {}
};

// A request and a response with a body of range(0) bytes, in segments of 1,460.
void http_transaction(benchmark::State& state) {
  BlockPool pool(8U << 20);
  Ignore sink;
  http::Parser parser({}, pool, 1, 8, sink);
  const std::string request =
      "GET /some/path/of/usual/length.html?query=1 HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: Mozilla/5.0 (X11; "
      "Linux x86_64)\r\nAccept: text/html,application/xhtml+xml\r\nAccept-Language: en\r\nAccept-Encoding: "
      "gzip\r\nCookie: session=0123456789abcdef\r\nConnection: keep-alive\r\n\r\n";
  const std::string answer = "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Type: text/html\r\nContent-Length: " +
                             std::to_string(state.range(0)) + "\r\n\r\n" +
                             std::string(static_cast<std::size_t>(state.range(0)), 'x');
  http::Connection* const connection = parser.open();
  for (auto _ : state) {
    parser.data(*connection, up, request);
    for (std::size_t at = 0; at < answer.size(); at += 1460) {
      parser.data(*connection, down, std::string_view(answer).substr(at, 1460));
    }
  }
  parser.close(connection);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * (request.size() + answer.size())));
}
BENCHMARK(http_transaction)->Arg(0)->Arg(14600)->Arg(100000);

// What rules on ten fields take to find these in a request of range(0), of which it has seven.
void http_fields(benchmark::State& state) {
  struct Ask final : http::TransactionSink {
    void transaction(http::Connection&, http::Event event, http::Transaction& transaction) override {
      if (event != http::Event::request_headers) return;
      for (auto _ : *state) {
        using enum http::FieldName;
        for (const http::FieldName name : {cookie, connection, content_type, content_length, host, user_agent, accept,
                                           accept_encoding, accept_language, referer}) {
          benchmark::DoNotOptimize(transaction.request.field(name));
        }
      }
    }
    void stopped(http::Connection&, http::StopReason) override {}
    benchmark::State* state = nullptr;
  };
  BlockPool pool(8U << 20);
  Ask sink;
  sink.state = &state;
  http::Parser parser({}, pool, 1, 8, sink);
  std::string request =
      "GET / HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: Mozilla/5.0\r\nAccept: text/html\r\nAccept-Language: "
      "en\r\nAccept-Encoding: gzip\r\nCookie: session=0\r\nConnection: keep-alive\r\n";
  for (std::int64_t i = 7; i < state.range(0); ++i) request += "Accept-" + std::to_string(i) + ": x\r\n";
  http::Connection* const connection = parser.open();
  parser.data(*connection, up, request + "\r\n");
  parser.close(connection);
}
BENCHMARK(http_fields)->Arg(7)->Arg(20)->Arg(250);

}  // namespace
}  // namespace sluice::flow
