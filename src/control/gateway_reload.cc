// A reload: the files of a running gateway are read again, and what may change while it runs is taken over.
#include <pthread.h>
#include <spdlog/spdlog.h>

#include <exception>
#include <new>
#include <sstream>
#include <system_error>

#include "base/appended_file.h"
#include "control/config_json.h"
#include "control/gateway.h"
#include "control/gateway_snapshot.h"
#include "control/pipeline_maker.h"
#include "control/section_views.h"
#include "control/stream_demands.h"

namespace sluice::control {

// Not on the control thread, which goes on to follow the kernel and to wait for signals.
void Gateway::reload_aside() {
  AppendedFile::reopen_all();  // whatever becomes of the reload: whoever has renamed them waits for it
  if (reloads_asked_.fetch_add(1) != 0) {
    spdlog::info("reload: once more when the one at work is over");
    return;
  }
  if (reloader_.joinable()) {
    reloader_.join();
  }
  try {
    reloader_ = std::thread([this] { reload_as_often_as_asked(); });
  } catch (const std::system_error& error) {
    reloads_asked_ = 0;
    spdlog::error("reload: no thread for it: {}", error.what());
  }
}

// A SIGHUP may follow a change that a reload at work has read past; those that come meanwhile are answered by one more.
void Gateway::reload_as_often_as_asked() {
  pthread_setname_np(pthread_self(), "sluice-reload");
  unsigned answered = 0;
  do {
    answered = reloads_asked_;
    const std::lock_guard lock(reload_mutex_);
    (void)reload_and_notify();
  } while (reloads_asked_.fetch_sub(answered) != answered && !loading_.stopped());
}

Expected<std::string> Gateway::reload() {
  AppendedFile::reopen_all();
  const std::unique_lock lock(reload_mutex_, std::try_to_lock);
  if (!lock) {
    return make_error("another reload is at work: wait for its end");
  }
  return reload_and_notify();
}

// In the log and the counters, whoever asked.
Expected<std::string> Gateway::reload_and_notify() {
  Expected<std::string> reloaded;
  notifier_.reloading();
  try {
    reloaded = reload_now();
  } catch (const std::bad_alloc&) {
    reloaded = make_error("there is not enough memory for it; everything stays as it was");
  } catch (const std::exception& error) {
    reloaded = make_error(error.what());
  }
  ++(reloaded ? reloads_done_ : reloads_refused_);
  notifier_.ready(reloaded ? "forwards; the configuration was read again"
                           : "forwards; a reload was refused, and all is as it was");
  std::istringstream lines(reloaded ? std::string() : reloaded.error().message);
  for (std::string line; std::getline(lines, line);) spdlog::error("reload: {}", line);
  return reloaded;
}

Expected<std::string> Gateway::reload_now() {
  Config fresh = Config::from_file(config_.file());
  if (!fresh.ok()) {
    (void)make_checked_pipeline(fresh, described_ports(fresh.engine));  // for what is wrong there, too
    return make_error(fresh.mistakes());
  }
  if (const std::string differences = needs_restart(config_, fresh); !differences.empty()) {
    return make_error(fresh.placed(differences));
  }
  auto pipeline = make_checked_pipeline(
      fresh, with_addresses(engine_->port_table(), fresh.engine),
      [this](std::string_view what, std::size_t done, std::size_t total) { return loading_.step(what, done, total); });
  if (!pipeline) {
    loading_.done();
    return tl::unexpected(pipeline.error());
  }
  if (const engine::Tables* tables = (*pipeline)->tables()) {
    for (const std::string& note : tables->notes()) spdlog::warn("reload: {}", note);
  }
  const std::vector<std::string> other_plugins = plugin_notes();
  for (const std::string& note : other_plugins) spdlog::warn("reload: {}", note);
  // First, because they can be taken back.
  bool holds = false;
  auto addresses = twin_addresses_.apply(fresh.engine.ports);
  const std::shared_ptr<void> addresses_back(nullptr, [&](std::nullptr_t) {
    if (!holds) (void)twin_addresses_.apply(ports_);
  });
  if (!addresses) {
    loading_.done();
    return make_error(fresh.placed(addresses.error().message));
  }
  auto streams = stream_demands(fresh);
  engine::StreamAdmission::Replaced replaced;
  if (admission_ && !admit_streams(*admission_, static_streams_, streams, &replaced)) {
    loading_.done();
    return make_error(fresh.mistakes());
  }
  std::vector<engine::StreamDemand> after;
  for (const StreamSection& stream : streams) after.push_back(stream.demand);
  // However it ends: it may throw.
  const std::shared_ptr<void> at_the_end(nullptr, [&](std::nullptr_t) {
    loading_.done();
    if (admission_ && holds) admission_->settle(replaced);
    if (admission_ && !holds) admission_->undo(replaced);
  });
  auto changed = engine_->pipeline().reload(**pipeline);
  if (!changed) return make_error(fresh.placed(changed.error().message));
  holds = true;
  static_streams_ = std::move(after);
  ports_ = fresh.engine.ports;
  set_in_force(fresh);
  // As at the start: what no other message says.
  each_of_chain<engine::Advice>(fresh, [&](const engine::Advice& advice, engine::SectionView& view) {
    for (const std::string& note : advice.notes(view, engine::Advice::Occasion::start)) {
      spdlog::warn("reload: {}", fresh.placed(note));
    }
  });
  if (admission_) {
    if (const std::string note = admission_->burst_note(); !note.empty()) spdlog::warn("reload: {}", note);
  }
  if (changed->empty()) *changed = "nothing to take over: this chain has no setting that can change while it runs";
  if (!addresses->empty()) *changed += "; " + *addresses;
  spdlog::info("reload: {}", *changed);
  for (const std::string& note : other_plugins) *changed += "; " + note;
  return changed;
}

void Gateway::set_in_force(const Config& config) {
  std::string json = config_json(config);
  const std::lock_guard lock(in_force_mutex_);
  in_force_ = std::move(json);
}

}  // namespace sluice::control
