#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>

#include "base/units.h"
#include "cli/api_option.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/top_view.h"
#include "control/snapshot_json.h"

namespace sluice::cli {
namespace {

using control::Snapshot;

struct TopOptions {
  bool once = false;
  std::string interval = "1s";
};

Expected<Snapshot> fetch(const control::ApiClient& client) {
  const auto body = client.get("/api/v1/stats");
  if (!body) return tl::unexpected(body.error());
  return control::from_json_text<Snapshot>(*body);
}

int fail(const Error& error) {
  std::fprintf(stderr, "sluice: %s\n", error.message.c_str());
  return 1;
}

// One report after another, for pipes and files, until the gateway or the reader is gone.
int print_reports(const control::ApiClient& client, std::chrono::milliseconds interval, bool once) {
  auto before = fetch(client);
  while (before) {
    std::this_thread::sleep_for(interval);
    auto now = fetch(client);
    if (!now) return fail(now.error());
    std::fputs((top_report(*now, &*before) + (once ? "" : "\n")).c_str(), stdout);
    if (std::fflush(stdout) != 0 || once) return std::ferror(stdout) != 0 ? 1 : 0;
    before = std::move(now);
  }
  return fail(before.error());
}

// A screen that is drawn again and again; it survives a restart of the gateway.
int show(const control::ApiClient& client, std::chrono::milliseconds interval) {
  auto now = fetch(client);
  if (!now) return fail(now.error());
  std::optional<Snapshot> before;
  TopView view(Terminal::has_colors());
  Terminal terminal;
  while (true) {
    const auto draw = [&] {
      const unsigned width = terminal.width();
      const unsigned height = terminal.height();
      terminal.draw(now ? view.draw(*now, before ? &*before : nullptr, width, height)
                        : view.draw(now.error().message, width, height));
    };
    draw();
    const auto next = std::chrono::steady_clock::now() + interval;
    Terminal::Input input;
    do {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - std::chrono::steady_clock::now());
      input = terminal.wait(std::max(left, std::chrono::milliseconds(0)));
      if (input.event == Terminal::Event::end) return 0;
      if (input.event == Terminal::Event::key) view.press(input.key);
      if (input.event != Terminal::Event::time) draw();
    } while (input.event != Terminal::Event::time);
    if (view.paused()) continue;
    if (now) before = std::move(*now);
    now = fetch(client);
  }
}

int run(const ApiPlace& api, const TopOptions& options) {
  const auto client = open_api(api);
  if (!client) return 2;
  const auto interval = parse_duration(options.interval);
  using std::chrono::milliseconds;
  if (!interval || *interval < milliseconds(100) || *interval > std::chrono::hours(1)) {
    std::fprintf(stderr, "sluice: --interval %s: allowed is \"100ms\" to \"3600s\"\n", options.interval.c_str());
    return 2;
  }
  const auto time = std::chrono::duration_cast<milliseconds>(*interval);
  return options.once || !Terminal::is_terminal() ? print_reports(*client, time, options.once) : show(*client, time);
}

}  // namespace

void add_top(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("top", "Show what a running gateway does, live");
  const auto api = add_api_options(*command);
  const auto options = std::make_shared<TopOptions>();
  command->add_flag("--once", options->once, "print one report over one interval and end");
  complete_with(command->add_option("--interval", options->interval, "time between reports"), {"500ms", "1s", "5s"})
      ->type_name("DURATION")
      ->capture_default_str();
  command->footer(
      "On a terminal: 1 to 6 choose what is shown, s sorts, r reverses, p pauses, ? lists the keys, q ends it. "
      "NO_COLOR\n"
      "in the environment keeps colours away. When standard output is no terminal, or TERM is dumb, it prints one "
      "report\n"
      "after another.");
  command->callback([=, &status] { status = run(*api, *options); });
}

}  // namespace sluice::cli
