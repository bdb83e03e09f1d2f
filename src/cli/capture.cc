#include <poll.h>
#include <signal.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "cli/api_option.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "control/capture_request.h"
#include "control/pcapng_blocks.h"

namespace sluice::cli {
namespace {

struct CaptureOptions {
  control::CaptureRequest request;
  std::vector<std::string> filter;
  std::string file = "-";
};

volatile sig_atomic_t interrupted = 0;

void note_interrupt(int /*signal*/) {
  interrupted = 1;
}

// From now on these end the capture, and not the program inside a block.
void end_capture_on_signals() {
  struct sigaction action {};
  action.sa_handler = note_interrupt;
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

// Writes whole blocks as they come, of statistics the last one alone, at the end.
class BlockWriter {
 public:
  explicit BlockWriter(std::FILE* out) : out_(out) {}
  // False: nothing more is wanted, or can be written.
  bool take(std::string_view bytes) {
    pending_.append(bytes);
    std::size_t at = 0;
    while (pending_.size() - at >= 2 * sizeof(std::uint32_t)) {
      const std::uint32_t type = word(at), length = word(at + 4);
      if (pending_.size() - at < length || length < 12) break;
      add(type, std::string_view(pending_).substr(at, length));
      at += length;
    }
    pending_.erase(0, at);
    return flush() && !reader_left();
  }
  void end() {
    if (failed_) return;
    write(statistics_);
    flush();
  }
  // Of a file on a full disk: what is of no whole block goes.
  void keep_whole_blocks() {
    __fpurge(out_);
    if (ftruncate(fileno(out_), static_cast<off_t>(whole_)) != 0) return;  // it is no file
  }
  // The reader of a pipe has closed its end, which a write alone would show, with the next frame.
  bool reader_left() const {
    pollfd end{fileno(out_), 0, 0};
    return poll(&end, 1, 0) > 0 && (end.revents & POLLERR) != 0;
  }
  bool failed() const { return failed_; }
  int why() const { return why_; }  // as errno
  std::uint64_t packets() const { return packets_; }
  std::uint64_t whole_packets() const { return whole_packets_; }  // that are written
  // As the last statistics say.
  std::uint64_t lost() const { return lost_; }

 private:
  std::uint32_t word(std::size_t at) const {
    std::uint32_t value = 0;
    std::memcpy(&value, pending_.data() + at, sizeof value);
    return value;
  }
  void add(std::uint32_t type, std::string_view block) {
    constexpr std::size_t dropped_at = 36, statistics_bytes = 52;  // behind interface, time and what was received
    if (type == control::pcapng::statistics) {
      statistics_ = block;
      if (block.size() >= statistics_bytes) std::memcpy(&lost_, block.data() + dropped_at, sizeof lost_);
      return;
    }
    if (type == control::pcapng::packet) ++packets_;
    write(block);
  }
  void write(std::string_view block) {
    if (failed_) return;
    if (std::fwrite(block.data(), 1, block.size(), out_) != block.size()) note_failure();
    bytes_ += block.size();
  }
  bool flush() {
    if (!failed_ && std::fflush(out_) != 0) note_failure();
    if (failed_) return false;
    whole_ = bytes_;
    whole_packets_ = packets_;
    return true;
  }
  void note_failure() {
    why_ = errno;
    failed_ = true;
  }

  std::FILE* const out_;
  std::string pending_, statistics_;
  std::uint64_t packets_ = 0, lost_ = 0;
  std::uint64_t bytes_ = 0, whole_ = 0, whole_packets_ = 0;
  bool failed_ = false;
  int why_ = 0;
};

int fail(const std::string& why, int status) {
  std::fprintf(stderr, "sluice: %s\n", why.c_str());
  return status;
}

int run(const ApiPlace& api, CaptureOptions options) {
  for (const std::string& word : options.filter) {
    options.request.filter += (options.request.filter.empty() ? "" : " ") + word;
  }
  if (const auto fits = control::check_filter_length(options.request.filter); !fits) {
    return fail(fits.error().message, 2);
  }
  const bool to_output = options.file == "-";
  if (to_output && isatty(STDOUT_FILENO) == 1) {
    return fail(
        "a capture is no text: write it to a file with -w FILE, or pipe it into 'tcpdump -nr -' or "
        "'wireshark -k -i -'",
        2);
  }
  const auto client = open_api(api);
  if (!client) return 2;
  // Opened with the first bytes: a capture that is refused empties no file.
  std::FILE* out = to_output ? stdout : nullptr;
  std::unique_ptr<BlockWriter> writer;
  int why = 0;
  std::chrono::steady_clock::duration stalled{0};  // at most, by who reads what is written
  end_capture_on_signals();
  const auto streamed = client->stream("/api/v1/capture", to_json(options.request), [&](std::string_view bytes) {
    if (out == nullptr && (out = std::fopen(options.file.c_str(), "wbe")) == nullptr) {
      why = errno;
      return false;
    }
    if (!writer) {
      writer = std::make_unique<BlockWriter>(out);
      std::fprintf(stderr, "sluice: capturing; Ctrl-C ends it\n");
    }
    const auto began = std::chrono::steady_clock::now();
    const bool wanted = writer->take(bytes);
    stalled = std::max(stalled, std::chrono::steady_clock::now() - began);
    return wanted && interrupted == 0;
  });
  if (why != 0) return fail(options.file + ": " + std::strerror(why), 1);
  if (!writer) return streamed ? 0 : fail(streamed.error().message, 1);
  writer->end();
  const bool failed = writer->failed() && !(to_output && writer->reader_left());
  if (failed && !to_output) writer->keep_whole_blocks();
  if (!to_output && std::fclose(out) != 0) return fail(options.file + ": " + std::strerror(errno), 1);
  if (failed) {
    return fail((to_output ? "standard output" : options.file) + ": " + std::strerror(writer->why()) + "; " +
                    counted_text(writer->whole_packets(), "frame") + " before are written",
                1);
  }
  if (!streamed && stalled >= control::capture_patience) {
    return fail(counted_text(writer->packets(), "frame") + " captured, and all that came after is lost, besides " +
                    std::to_string(writer->lost()) + " before: " + (to_output ? "the reader" : options.file) +
                    " took nothing for " + duration_text(control::capture_patience) +
                    ", and the gateway left the capture",
                1);
  }
  std::fprintf(stderr, "sluice: %s captured, %lu lost: the gateway had no capacity for them (--buffer)\n",
               counted_text(writer->packets(), "frame").c_str(), writer->lost());
  return streamed ? 0 : fail(streamed.error().message + "; what came before is written", 1);
}

}  // namespace

void add_capture(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("capture", "Show the frames of a running gateway, as pcapng");
  const auto api = add_api_options(*command);
  const auto options = std::make_shared<CaptureOptions>();
  complete_with(command->add_option("TARGET", options->request.target,
                                    "a port, any (of all ports), lane:N, or drops: frames that are dropped"),
                {"any", "drops", "lane:0"})
      ->type_name("")
      ->required();
  command->add_option("FILTER", options->filter, "only these frames, as tcpdump has it: tcp port 80")->type_name("");
  complete_with_files(command->add_option("-w,--write", options->file, "file to write; -: standard output"))
      ->capture_default_str();
  command->add_option("-s,--snapshot", options->request.snapshot, "bytes of a frame that are kept")
      ->check(CLI::Range(14U, 262144U))
      ->capture_default_str();
  command->add_option("-c,--count", options->request.count, "end after so many frames")->check(CLI::PositiveNumber);
  command->add_option("--seconds", options->request.seconds, "end after so long")->check(CLI::PositiveNumber);
  command->add_option("--direction", options->request.direction, "in or out: only frames that come, or that leave")
      ->check(CLI::IsMember({"in", "out"}));
  command->add_option("--reason", options->request.reason, "of drops: this one alone, such as no_route");
  command->add_option("--buffer", options->request.buffer, "frames that the gateway keeps while they wait")
      ->check(CLI::Range(16U, 65536U))
      ->capture_default_str();
  command->footer(
      "sluice capture lan icmp | tcpdump -nr -       sluice capture drops -w drops.pcapng\n"
      "What became of a frame stands in its comment. docs/capture.md has more.");
  command->callback([=, &status] { status = run(*api, *options); });
}

}  // namespace sluice::cli
