#include "control/gateway.h"

#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/appended_file.h"
#include "base/machine.h"
#include "base/units.h"
#include "control/busy_cores.h"
#include "control/conversation_notes.h"
#include "control/function_metrics.h"
#include "control/gateway_snapshot.h"
#include "control/health.h"
#include "control/kernel_forwarding.h"
#include "control/log.h"
#include "control/netlink/source_rules.h"
#include "control/open_files.h"
#include "control/pipeline_maker.h"
#include "control/port_notes.h"
#include "control/section_views.h"
#include "control/stream_demands.h"
#include "engine/advice.h"
#include "engine/self_check.h"
#include "port/eal.h"
#include "port/kernel_rules.h"
#include "port/virtual_device.h"

namespace sluice::control {
namespace {

constexpr int tick_ms = 200;
constexpr std::chrono::seconds between_looks_at_host{1};
constexpr std::chrono::seconds between_service_ticks{1};
constexpr std::chrono::seconds between_statuses{5};

// Drawing is for a log that goes to a terminal.
bool draws_progress(const LogOptions& log) {
  return log.file.empty() && log.format == "text" && isatty(STDERR_FILENO) == 1;
}

bool has_api(const ApiOptions& options) {
  return !options.listen.empty() || (!options.socket.empty() && options.socket != "auto");
}

std::string whereabouts(const Api& api, const ApiOptions& options) {
  const bool by_tcp = !api.address().host.empty();
  std::string text = by_tcp ? api.address().str() + (options.read_only ? " for reads" : " for reads and changes") : "";
  if (api.socket().empty()) return text + (options.read_only ? "; changes cannot be made" : "");
  return text + (by_tcp ? "; " : "") + api.socket() + " for root" +
         (options.group.empty() ? "" : " and the group " + options.group) + ", changes included";
}

Expected<void> unless_ended(Expected<void> step) {
  if (step && waiting_end_signal() != 0) {
    return make_error("interrupted while starting");
  }
  return step;
}

}  // namespace

Gateway::Gateway(Config& config)
    : config_(config), started_(std::chrono::steady_clock::now()), loading_(draws_progress(config.log)) {}

Expected<std::unique_ptr<Gateway>> Gateway::open(Config& config, std::unique_ptr<engine::Pipeline> checked) {
  close_plugins();
  std::unique_ptr<Gateway> gateway(new Gateway(config));
  gateway->wake_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (gateway->wake_fd_ < 0) {
    return make_error(std::string("the API could not end it: no eventfd: ") + std::strerror(errno));
  }
  // Before what takes long: the address is free, or all of it would be for nothing.
  if (auto free = Api::check_address(config.api); !free) {
    return tl::unexpected(free.error());
  }
  if (auto enough = raise_open_files(config.engine); !enough) {
    return tl::unexpected(enough.error());
  }
  if (!config.engine.allow_busy_cores) {
    if (auto free = check_cores_are_free(config.engine); !free) {
      return tl::unexpected(free.error());
    }
  }
  auto captures = config.check_captures(gateway->watch_tables(), Config::Captures::copied);
  gateway->loading_.done();
  if (!captures) {
    return tl::unexpected(captures.error());
  }
  auto eal = port::start_eal(config.engine.memory, config.engine.ports);
  if (!eal) {
    return tl::unexpected(eal.error());
  }
  gateway->eal_started_ = true;
  spdlog::info("memory: {}", eal->text);
  Expected<void> step = unless_ended({});
  step = step ? unless_ended(gateway->open_engine(*checked)) : step;
  checked.reset();
  step = step ? gateway->address_twins() : step;
  step = step ? gateway->open_admission() : step;
  step = step && gateway->routing_ != nullptr ? unless_ended(gateway->open_mirror()) : step;
  step = step ? unless_ended(gateway->open_services()) : step;
  gateway->loading_.done();
  if (!step) {
    return tl::unexpected(step.error());
  }
  gateway->reads_captures_ = port::only_read_captures(config.engine.ports);
  if (has_api(config.api)) {
    auto api = Api::start(config.api, *gateway);
    if (!api) {
      return tl::unexpected(api.error());
    }
    gateway->api_ = std::move(*api);
    spdlog::info("api: {}", whereabouts(*gateway->api_, config.api));
  }
  spdlog::info("{}", resident_text(eal->hugepages));
  return gateway;
}

Expected<void> Gateway::open_engine(engine::Pipeline& checked) {
  const auto make = [&](const engine::PortTable& ports) {
    auto pipeline = make_pipeline(config_, ports);
    if (engine::Tables* tables = pipeline ? (*pipeline)->tables() : nullptr) {
      tables->take_read(*checked.tables());
      tables->watch_loading(watch_tables());
    }
    return pipeline;
  };
  auto engine = engine::Engine::create(config_.engine, make);
  loading_.done();
  if (!engine) {
    return tl::unexpected(engine.error());
  }
  engine_ = std::move(*engine);
  if (auto named = check_metrics(engine_->pipeline(), config_.engine.chain); !named) return named;
  set_in_force(config_);
  for (const std::string& note : engine_->notes()) {
    spdlog::info("{}", note);
  }
  if (const engine::Tables* tables = engine_->pipeline().tables()) {
    for (const std::string& note : tables->notes()) spdlog::warn("{}", note);
  }
  const auto warn = [&](const std::string& note) { spdlog::warn("{}", config_.placed(note)); };
  std::ranges::for_each(conversation_notes(config_.engine), warn);
  std::ranges::for_each(port_notes(config_.engine), warn);
  each_of_chain<engine::Advice>(config_, [&](const engine::Advice& advice, engine::SectionView& view) {
    std::ranges::for_each(advice.notes(view, engine::Advice::Occasion::start), warn);
  });
  routing_ = engine_->pipeline().first<function::Routing>();
  if (routing_ != nullptr) {
    const function::RouteTable& table = routing_->table();
    const std::string own =
        table.size(4) + table.size(6) == 0
            ? ""
            : fmt::format("{} IPv4 and {} IPv6 from the configuration; ", table.size(4), table.size(6));
    spdlog::info("routes: {}capacity for {} IPv4 and {} IPv6", own, routing_->capacity(4), routing_->capacity(6));
  }
  return {};
}

// Before the kernel's tables are read: what follows from addresses is in them then.
Expected<void> Gateway::address_twins() {
  ports_ = config_.engine.ports;
  const auto done = twin_addresses_.apply(ports_);
  if (!done) return tl::unexpected(done.error());
  if (!done->empty()) spdlog::info("kernel: {}", *done);
  return {};
}

void Gateway::address_again(std::size_t port) {
  const std::string& twin = engine_->host_path().twin_names()[port];
  if (const std::size_t count = twin_addresses_.restore(twin); count != 0) {
    spdlog::info("kernel: {} put back on {}", counted_text(count, "address"), twin);
  }
}

Expected<void> Gateway::open_admission() {
  std::vector<std::string> notes;
  const std::string device = engine_->gpu() != nullptr ? engine_->gpu()->info().name : "cpu";
  auto admission = make_admission(config_, profile_subject(config_, device), engine_->timing(), notes);
  for (const std::string& note : notes) spdlog::warn("{}", note);
  if (!admission) return tl::unexpected(admission.error());
  admission_ = std::move(*admission);
  if (!admission_) return {};
  if (engine_->gpu() != nullptr) device_capacity_.emplace(*admission_);
  auto streams = stream_demands(config_);
  const std::size_t mistakes = config_.diagnostics().lines.size();
  if (!admit_streams(*admission_, {}, streams) || !check_later_deadlines(*admission_, config_)) {
    return make_error(config_.mistakes(mistakes));
  }
  for (const StreamSection& stream : streams) static_streams_.push_back(stream.demand);
  spdlog::info("streams: {}", admission_->text());
  if (const std::string note = admission_->burst_note(); !note.empty()) spdlog::warn("{}", note);
  return {};
}

engine::TableProgress Gateway::watch_tables() {
  return [this](std::string_view what, std::size_t done, std::size_t total) {
    if (!ready_) notifier_.loading(std::chrono::steady_clock::now(), std::string(what));
    return loading_.step(what, done, total);
  };
}

Expected<void> Gateway::open_mirror() {
  MirrorOptions options;
  for (std::size_t port = 0; port < engine_->host_path().twin_names().size(); ++port) {
    if (const std::string& name = engine_->host_path().twin_names()[port]; !name.empty()) {
      options.twins.push_back({static_cast<function::PortIndex>(port), name});
    }
  }
  if (options.twins.empty() || !routing_->follows_kernel()) {
    return {};
  }
  std::ranges::transform(options.twins, std::back_inserter(mirrored_twins_), &MirrorOptions::Twin::name);
  look_at_forwarding();
  options.verify_interval = routing_->verify_interval();
  options.progress = [this](std::string_view what, std::size_t count) {
    return watch_tables()("kernel: " + std::string(what), count, 0);
  };
  options.gets_ipv6 = [this](function::PortIndex port) { address_again(port); };
  auto mirror = NetlinkMirror::open(std::move(options), routing_->table());
  if (!mirror) {
    return tl::unexpected(mirror.error());
  }
  mirror_ = std::move(*mirror);
  if (auto started = mirror_->start(); !started) {
    return started;
  }
  look_at_mirror();
  look_at_twins();
  spdlog::info("kernel: {} routes and {} neighbours mirrored", mirror_stats_.routes, mirror_stats_.neighbours);
  const auto rules = netlink::find_source_rules();
  if (!rules) spdlog::warn("kernel: {}", rules.error().message);
  for (const std::string& chain : rules.value_or(std::vector<std::string>{})) {
    spdlog::warn(
        "kernel: a rule of nftables {} checks sources by the way back; frames of the fast path do not pass it. "
        "rp_filter is "
        "followed for IPv4; for IPv6 drop what should not come by a rule of the chain's own",
        chain);
  }
  note_policy_routing();
  return {};
}

void Gateway::note_policy_routing() {
  constexpr std::size_t most_named = 4;
  std::vector<std::uint32_t> own_tables;
  for (const engine::Service* const service : services())
    std::ranges::move(service->kernel_tables(), std::back_inserter(own_tables));
  other_tables_ = mirror_->stats().other_tables;
  std::vector<std::string> rules = port::find_rules_that_lead_elsewhere(own_tables);
  std::erase_if(rules, [&](const std::string& rule) { return !rules_named_.insert(rule).second; });
  for (std::size_t i = 0; i < std::min(rules.size(), most_named); ++i) {
    spdlog::warn("kernel: '{}' is not followed by the fast path, which forwards by the table main alone", rules[i]);
  }
  if (rules.size() > most_named) spdlog::warn("kernel: nor are {} more such rules", rules.size() - most_named);
}

std::vector<engine::Service*> Gateway::services() const {
  return engine_->pipeline().all<engine::Service>();
}

Expected<void> Gateway::open_services() {
  const engine::ServicePlan plan{engine_->host_path().twin_names(), config_.engine.deadline, admission_.get()};
  for (engine::Service* const service : services()) {
    if (auto opened = service->open(plan); !opened) return opened;
  }
  return {};
}

void Gateway::close_services() {
  if (!engine_) return;
  for (engine::Service* const service : services()) service->close();
}

Gateway::~Gateway() {
  loading_.stop();
  api_.reset();
  if (reloader_.joinable()) {
    reloader_.join();
  }
  if (resetter_.joinable()) {
    // One that hangs in the driver is left behind, as what it works on is.
    if (engine_ && engine_->is_stuck() && is_resetting_.load()) {
      resetter_.detach();
    } else {
      resetter_.join();
    }
  }
  close_services();
  mirror_.reset();
  if (engine::Tables* tables = engine_ ? engine_->pipeline().tables() : nullptr) {
    tables->leave_to_eal();
  }
  engine_.reset();
  if (eal_started_) {
    port::stop_eal();
  }
  if (wake_fd_ >= 0) {
    close(wake_fd_);
  }
}

Expected<void> Gateway::run() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGQUIT);
  sigaddset(&signals, SIGHUP);
  // Blocked by main() before any thread was made, so that they all arrive here.
  const int signal_fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
  if (signal_fd < 0) {  // nothing would end it
    return make_error(std::string("signals cannot be waited for: ") + std::strerror(errno));
  }
  engine_->start();
  spdlog::info("running; end with Ctrl-C");
  ready_ = true;
  notified_ = notifier_ ? status_text() : "";
  notifier_.ready(notified_);

  pollfd fds[3] = {{signal_fd, POLLIN, 0}, {wake_fd_, POLLIN, 0}, {mirror_ ? mirror_->fd() : -1, POLLIN, 0}};
  auto next_tick = std::chrono::steady_clock::now();
  Expected<void> result;
  while (result) {
    poll(fds, 3, tick_ms);
    notify_manager(std::chrono::steady_clock::now());
    if ((fds[1].revents & POLLIN) != 0 || ends(signal_fd)) {
      left_captures_ = reads_captures_ && !has_read_captures();
      break;
    }
    if (mirror_) {
      result = mirror_->process();
    }
    if (const auto now = std::chrono::steady_clock::now(); result && now >= next_tick) {
      next_tick = now + std::chrono::milliseconds(tick_ms);
      if (mirror_) {
        result = mirror_->tick(now).and_then([this] { return resolve_gateways(); });
      }
      tick(now);
      if (reads_captures_ && capture_end_.reached(engine_->stats())) {
        spdlog::info("the captures are forwarded");
        break;
      }
    }
  }
  notifier_.stopping();
  loading_.stop();
  close(signal_fd);
  close_services();  // while others can be notified, such as servers
  engine_->stop();
  // Of a capture the alerts are what it was read for; a gateway has forwarded all the same, and its log has said it.
  if (const std::string lost = engine_->pipeline().lost_output(); result && reads_captures_ && !lost.empty()) {
    return make_error(lost);
  }
  return result;
}

// Whether a signal that ends the gateway has come; SIGHUP reloads, as services do.
bool Gateway::ends(int signal_fd) {
  signalfd_siginfo signal{};
  while (read(signal_fd, &signal, sizeof signal) == sizeof signal) {
    if (signal.ssi_signo != SIGHUP) {
      end_signal_ = static_cast<int>(signal.ssi_signo);
      return true;
    }
    reload_aside();
  }
  return false;
}

// Their end shows two ticks after it at the earliest, which who ends the gateway need not wait for.
bool Gateway::has_read_captures() {
  constexpr int looks = 100;
  constexpr std::chrono::milliseconds between_looks(10);
  for (int look = 0; look < looks; ++look) {
    if (capture_end_.reached(engine_->stats())) return true;
    std::this_thread::sleep_for(between_looks);
  }
  return false;
}

void Gateway::tick_services(std::chrono::steady_clock::time_point now) {
  if (now < next_service_tick_) return;
  next_service_tick_ = now + between_service_ticks;
  for (engine::Service* const service : services()) service->tick(now);
}

// For `systemctl status`.
std::string Gateway::status_text() {
  const Snapshot now = snapshot();
  const std::string why = ailments(now);
  std::string text = why.empty() ? "forwards" : "forwards, degraded: " + why;
  if (routing_ != nullptr) {
    text += "; " + std::to_string(now.routes.ipv4) + " IPv4 and " + std::to_string(now.routes.ipv6) + " IPv6 routes";
  }
  return text;
}

void Gateway::notify_manager(std::chrono::steady_clock::time_point now) {
  if (!notifier_) return;
  notifier_.alive(now);
  if (now < next_status_) return;
  next_status_ = now + between_statuses;
  if (std::string text = status_text(); text != notified_) {
    notified_ = std::move(text);
    notifier_.status(notified_);
  }
}

void Gateway::tick(std::chrono::steady_clock::time_point now) {
  watch_links();
  look_at_device();
  tick_services(now);
  if (now >= next_look_at_host_) {
    next_look_at_host_ = now + between_looks_at_host;
    look_at_twins();
    look_at_mtus();
    look_at_drops();
    if (mirror_) {
      look_at_forwarding();
    }
  }
  if (routing_ == nullptr || !mirror_) {
    return;
  }
  look_at_mirror();
}

// Nobody else makes the kernel ask for gateways that only Sluice's own routes name: it has no traffic for them. To ask
// again for one that it asks for already is nothing to it.
Expected<void> Gateway::resolve_gateways() {
  if (routing_ == nullptr || !mirror_) {
    return {};
  }
  for (const function::AdjacencyTable::Gateway& gateway : routing_->table().gateways()) {
    if (gateway.resolved) {
      continue;
    }
    if (const auto sent = mirror_->resolve(gateway.port, gateway.address); !sent) {
      return tl::unexpected(sent.error());
    }
  }
  return {};
}

Snapshot Gateway::snapshot() {
  Snapshot snapshot = take_snapshot(*engine_, config_.engine);
  snapshot.uptime_ns = static_cast<std::uint64_t>((std::chrono::steady_clock::now() - started_).count());
  snapshot.reloads_done = reloads_done_;
  snapshot.reloads_refused = reloads_refused_;
  if (routing_ != nullptr) {
    snapshot.routes = {routing_->table().size(4), routing_->table().size(6), routing_->table().neighbour_count()};
    for (PortSnapshot& port : snapshot.ports) {
      packet::MacAddress mac;
      const std::uint64_t word = routing_->table().ingress().mac(static_cast<function::PortIndex>(port.index));
      std::memcpy(mac.bytes.data(), &word, mac.bytes.size());
      port.mac = mac.str();
    }
  }
  {
    const std::lock_guard mirror_lock(mirror_stats_mutex_);
    snapshot.mirror = mirror_snapshot(mirror_stats_);
    for (std::size_t i = 0; i < nearly_all_dropped_.size(); ++i) {
      const packet::Reason reason = nearly_all_dropped_[i];
      if (reason != packet::no_reason) snapshot.ports[i].drops_nearly_all_as = packet::reason_name(reason);
    }
    if (nearly_all_dropped_together_ != packet::no_reason) {
      snapshot.drops_nearly_all_as = packet::reason_name(nearly_all_dropped_together_);
    }
    for (std::size_t i = 0; i < checksums_unfinished_.size(); ++i) {
      snapshot.ports[i].checksums_unfinished = checksums_unfinished_[i];
      snapshot.ports[i].fails_to_send = fails_to_send_[i];
    }
    if (!forwarding_off_.what.empty()) {
      snapshot.forwarding_off = forwarding_off_.what + " (sysctl -w " + forwarding_off_.settings + ")";
    }
    for (std::size_t i = 0; i < std::min(snapshot.ports.size(), twins_unaddressed_.size()); ++i) {
      snapshot.ports[i].twin_unaddressed = twins_unaddressed_[i];
      snapshot.ports[i].addresses_missing = addresses_missing_[i];
    }
  }
  if (admission_) add_metrics(admission_->state(), snapshot.metrics);
  std::ranges::move(service_metrics(engine_->pipeline(), config_.engine.chain), std::back_inserter(snapshot.metrics));
  const auto add_troubles = [&](std::vector<engine::Trouble> troubles) {
    for (engine::Trouble& one : troubles) {
      snapshot.function_troubles.push_back({std::move(one.what), std::move(one.remedy)});
    }
  };
  for (const engine::Service* const service : services()) add_troubles(service->troubles());
  snapshot.output_troubles = AppendedFile::troubles();
  for (const auto& element : engine_->pipeline().elements()) {
    const auto* const self_check = element->trait<engine::SelfCheck>();
    if (self_check == nullptr) continue;
    add_troubles(self_check->troubles());
  }
  const Loading::State loading = loading_.state();
  snapshot.loading = {loading.what, loading.done, loading.total};
  return snapshot;
}

void Gateway::stop() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof one);
}

}  // namespace sluice::control
