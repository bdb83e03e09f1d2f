// A running gateway: configuration, DPDK, engine, the kernel's mirror and the API, put together and taken apart in
// order.
//
// Thread-safety: open(), run() and destruction on the control thread; the StatsSource calls on the API's threads.
#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "base/error.h"
#include "control/api.h"
#include "control/capture_end.h"
#include "control/checksum_watch.h"
#include "control/config.h"
#include "control/device_capacity.h"
#include "control/device_return.h"
#include "control/drop_watch.h"
#include "control/host_log.h"
#include "control/loading.h"
#include "control/netlink/mirror.h"
#include "control/netlink/mirror_log.h"
#include "control/send_watch.h"
#include "control/service_notifier.h"
#include "control/snapshot.h"
#include "control/twin_addresses.h"
#include "engine/engine.h"
#include "engine/service.h"
#include "engine/stream_admission.h"
#include "engine/tables.h"
#include "function/routing.h"

namespace sluice::control {

class Gateway : public StatsSource {
 public:
  // Opens everything that `config` names and says what was chosen in the log, or leaves nothing behind and says why
  // not, be it that a signal to end has come (loading.h). The Config must be ok() and outlive the Gateway; `checked` is
  // make_checked_pipeline()'s for it.
  static Expected<std::unique_ptr<Gateway>> open(Config& config, std::unique_ptr<engine::Pipeline> checked);
  ~Gateway() override;

  // Forwards until stop(), SIGINT, SIGTERM or SIGQUIT, or, when every port is one of net_pcap and a capture is all
  // there is to read, until all of it is forwarded; then ends cleanly: in-flight batches finish, ports close.
  // An Error, too, where captures alone were read and lines about them, such as alerts, could not be written.
  Expected<void> run();
  // The signal that has ended run(); 0: none has.
  int end_signal() const { return end_signal_; }
  // Captures alone were to be read, and a signal or stop() has ended run() before their end.
  bool left_captures() const { return left_captures_; }

  Snapshot snapshot() override;
  Expected<RouteTable> routes(const RouteQuery& query) override;
  Expected<std::vector<NeighbourRow>> neighbours() override;
  engine::ApiAnswer ask(const engine::ElementType& type, const engine::ApiRoute& route,
                        const engine::ApiRequest& request) override;
  Expected<std::unique_ptr<CaptureStream>> capture(const CaptureRequest& request) override;
  std::string config() override;
  std::vector<FunctionRow> functions() override;
  // Loads on the caller's thread, and may take seconds; refused while another reload is at work.
  Expected<std::string> reload() override;
  // Refused while a reload, or another one, is at work.
  Expected<std::string> reset_device(std::string_view device) override;
  void stop() override;

 private:
  explicit Gateway(Config& config);
  void reload_aside();
  void reload_as_often_as_asked();
  Expected<std::string> reload_and_notify();
  Expected<std::string> reload_now();
  // On a thread of its own, because a driver may hang. An Error: one is at work.
  using ResetAnswer = std::shared_future<Expected<std::string>>;
  Expected<ResetAnswer> begin_reset(std::size_t gpu);
  Expected<std::string> reset_gpu(std::size_t gpu);
  Expected<void> open_engine(engine::Pipeline& checked);
  Expected<void> address_twins();
  void address_again(std::size_t port);
  Expected<void> open_admission();
  Expected<void> open_mirror();
  // Of rules that have not been named yet.
  void note_policy_routing();
  std::vector<engine::Service*> services() const;
  Expected<void> open_services();
  void close_services();
  engine::TableProgress watch_tables();
  bool ends(int signal_fd);
  bool has_read_captures();
  void watch_links();
  void look_at_device();
  void look_at_mirror();
  void look_at_twins();
  void look_at_mtus();
  void look_at_drops();
  void look_at_forwarding();
  void tick_services(std::chrono::steady_clock::time_point now);
  void notify_manager(std::chrono::steady_clock::time_point now);
  std::string status_text();
  void tick(std::chrono::steady_clock::time_point now);
  Expected<void> resolve_gateways();
  void set_in_force(const Config& config);

  Config& config_;
  std::chrono::steady_clock::time_point started_;
  std::unique_ptr<engine::Engine> engine_;
  function::Routing* routing_ = nullptr;                // null: the chain does not forward by routes
  std::unique_ptr<engine::StreamAdmission> admission_;  // null: there is no profile. Services have it, too
  std::optional<DeviceCapacity> device_capacity_;       // of a profile of the GPU
  std::optional<DeviceReturn> device_return_;           // of a gateway that runs
  std::thread resetter_;                                // of the last GPU that was taken again
  std::atomic<bool> is_resetting_{false};
  std::vector<engine::StreamDemand> static_streams_;  // of the configuration; the thread's that reloads
  std::unique_ptr<NetlinkMirror> mirror_;
  MirrorLog mirror_log_;
  std::set<std::string> rules_named_;  // of policy routing
  std::uint64_t other_tables_ = 0;     // what the mirror counted of them at the last look
  LogLimiter looks_at_other_tables_;
  HostLog host_log_;
  DropWatch drop_watch_;
  ChecksumWatch checksum_watch_;
  SendWatch send_watch_;
  std::uint64_t other_hosts_ = 0;  // frames dropped as for another link address, as of the last look
  TwinAddresses twin_addresses_;
  std::unique_ptr<Api> api_;
  Loading loading_;
  ServiceNotifier notifier_;
  std::atomic<bool> ready_{false};  // has been announced
  std::string notified_;            // the last status; the control thread's
  std::mutex reload_mutex_;
  std::mutex in_force_mutex_;
  std::string in_force_;  // config_json(), by in_force_mutex_
  std::thread reloader_;  // of the last SIGHUP
  std::atomic<std::uint64_t> reloads_done_{0}, reloads_refused_{0};
  std::atomic<unsigned> reloads_asked_{0};  // by SIGHUPs that no reload has answered yet
  std::vector<port::PortOptions> ports_;    // as the last reload left them
  bool eal_started_ = false;
  int wake_fd_ = -1;
  bool reads_captures_ = false, left_captures_ = false;
  int end_signal_ = 0;
  CaptureEnd capture_end_;
  std::mutex mirror_stats_mutex_;
  MirrorStats mirror_stats_;                        // as of the last tick, for the API's threads
  std::vector<packet::Reason> nearly_all_dropped_;  // by port, as of the last look
  packet::Reason nearly_all_dropped_together_ = packet::no_reason;
  std::vector<bool> fails_to_send_;         // by port, likewise
  std::vector<bool> checksums_unfinished_;  // by port, likewise
  ForwardingOff forwarding_off_;            // as of the last look, for them too
  std::vector<bool> twins_unaddressed_;     // by port, likewise
  std::vector<std::vector<std::string>> addresses_missing_;
  std::vector<bool> link_up_;  // by port, as of the last tick
  std::vector<bool> deleted_;  // the interface under it; by port
  std::vector<std::string> mirrored_twins_;
  std::chrono::steady_clock::time_point next_look_at_host_, next_service_tick_, next_status_;
};

}  // namespace sluice::control
