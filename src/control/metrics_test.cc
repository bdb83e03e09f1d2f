#include "control/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "control/sample_snapshot.h"

namespace sluice::control {
namespace {

// A reader of the exposition format, strict where the format is.
struct Exposition {
  std::map<std::string, std::string> types;  // by family
  std::map<std::string, double> samples;     // by name and labels, as written
  std::vector<std::string> problems;

  explicit Exposition(const std::string& text) {
    static const std::regex help(R"(# HELP ([a-z_][a-z0-9_]*) \S.*)");
    static const std::regex type(R"(# TYPE ([a-z_][a-z0-9_]*) (counter|gauge|histogram|summary))");
    static const std::regex sample(
        R"re(([a-z_][a-z0-9_]*)(\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z_]+="(?:[^"\\\n]|\\["\\n])*")*\})? ([0-9.e+-]+))re");
    if (text.empty() || text.back() != '\n') problems.emplace_back("does not end with a line break");
    std::string family;
    std::string helped;
    std::set<std::string> closed;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::smatch match;
      if (std::regex_match(line, match, help)) {
        helped = match[1];
      } else if (std::regex_match(line, match, type)) {
        if (match[1] != helped) problems.push_back("TYPE without HELP: " + line);
        if (!closed.insert(match[1]).second) problems.push_back("family twice: " + line);
        family = match[1];
        types[family] = match[2];
      } else if (std::regex_match(line, match, sample)) {
        const std::string name = match[1];
        const bool sums = types[family] == "histogram" || types[family] == "summary";
        const bool own = name == family || (types[family] == "histogram" && name == family + "_bucket") ||
                         (sums && (name == family + "_sum" || name == family + "_count"));
        if (!own) problems.push_back("sample outside its family: " + line);
        if (types[family] == "counter" && !name.ends_with("_total"))
          problems.push_back("counter without _total: " + line);
        if (!samples.emplace(name + match[2].str(), std::stod(match[3])).second)
          problems.push_back("sample twice: " + line);
      } else {
        problems.push_back("not in the format: " + line);
      }
    }
  }
};

TEST(Metrics, AreInPrometheusFormat) {
  for (const Snapshot& snapshot : {sample_snapshot(), Snapshot()}) {
    const Exposition exposition(metrics_text(snapshot));
    EXPECT_EQ(exposition.problems, std::vector<std::string>());
    for (const auto& [family, type] : exposition.types) EXPECT_EQ(family.rfind("sluice_", 0), 0U) << family;
  }
}

TEST(Metrics, OfAFunctionBreakNothing) {
  Snapshot snapshot = sample_snapshot();
  const std::size_t families = Exposition(metrics_text(snapshot)).types.size();
  for (const char* name : {"drops", "a b", "line\nbreak", "", "Capital", "lane_batches", "latency_seconds_sum"}) {
    snapshot.metrics.push_back({name, "of a plug-in", 7, std::string_view(name) != "latency_seconds_sum"});
  }
  snapshot.metrics.push_back({"probe_seen", "two\nlines, and a \\", 7});
  snapshot.metrics.push_back({"probe_seen", "again", 8});
  snapshot.metrics.push_back({"probe_wait_ns", "wait in nanoseconds", 7});
  snapshot.metrics.push_back({"probe_wait_seconds", "again", 8});
  const std::string text = metrics_text(snapshot);
  const Exposition exposition(text);
  EXPECT_EQ(exposition.problems, std::vector<std::string>());
  EXPECT_EQ(exposition.types.size(), families + 2);
  EXPECT_EQ(exposition.samples.at("sluice_probe_seen_total"), 7);
  EXPECT_NE(text.find("# HELP sluice_probe_seen_total Two\\nlines, and a \\\\\n"), std::string::npos);
}

TEST(Metrics, CarryTheSnapshotsValues) {
  auto samples = Exposition(metrics_text(sample_snapshot())).samples;
  const std::map<std::string, double> expected = {
      {"sluice_build_info{version=\"0.1.0\",chain=\"route\",mode=\"full\",device=\"auto\"}", 1},
      {"sluice_uptime_seconds", 3723},
      {"sluice_deadline_seconds", 0.001},
      {"sluice_bound_seconds", 0.00091},
      {"sluice_cycles_total", 12},
      {"sluice_cycle_overruns_total", 3},
      {"sluice_conserved", 1},
      {"sluice_routes{family=\"ipv6\"}", 200000},
      {"sluice_neighbours", 12},
      {"sluice_mirror_prefixes", 599'990},
      {"sluice_mirror_routes", 599'985},
      {"sluice_mirror_neighbours", 11},
      {"sluice_mirror_refused", 5},
      {"sluice_mirror_messages_total", 700'000},
      {"sluice_mirror_malformed_total", 1},
      {"sluice_mirror_overruns_total", 2},
      {"sluice_mirror_resyncs_total", 3},
      {"sluice_mirror_mended_total", 9},
      {"sluice_mirror_probes_total", 40},
      {"sluice_mirror_unsent_total", 6},
      {"sluice_mirror_refusals_total", 70},
      {"sluice_loading", 1},
      {"sluice_loading_done", 250'000},
      {"sluice_loading_entries", 500'000},
      {"sluice_lane_receive_frames_total{lane=\"0\",port=\"left\",queue=\"0\"}", 1000},
      {"sluice_lane_receive_bytes_total{lane=\"1\",port=\"right\",queue=\"0\"}", 128000},
      {"sluice_lane_in_flight_frames{lane=\"0\",port=\"left\",queue=\"0\"}", 5},
      {"sluice_lane_device_info{lane=\"0\",port=\"left\",queue=\"0\",device=\"cuda:0\","
       "why=\"the core carried less\"}",
       1},
      {"sluice_lane_device_info{lane=\"1\",port=\"right\",queue=\"0\",device=\"cpu\",why=\"\"}", 1},
      {"sluice_lane_device_changes_total{lane=\"0\",port=\"left\",queue=\"0\"}", 3},
      {"sluice_lane_core_frames_per_second{lane=\"0\",port=\"left\",queue=\"0\"}", 500000},
      {"sluice_lane_gpu_frames_per_second{lane=\"0\",port=\"left\",queue=\"0\"}", 4000000},
      {"sluice_lane_core_frame_seconds{lane=\"0\",port=\"left\",queue=\"0\"}", 0.0000018},
      {"sluice_lane_deadline_misses_total{lane=\"0\",port=\"left\",queue=\"0\"}", 4},
      {"sluice_lane_deadline_misses_stalled_total{lane=\"0\",port=\"left\",queue=\"0\"}", 3},
      {"sluice_lane_busy_seconds_total{lane=\"0\",port=\"left\",queue=\"0\",side=\"collect\"}", 0.000006},
      {"sluice_lane_busy_seconds_total{lane=\"0\",port=\"left\",queue=\"0\",side=\"forward\"}", 0.000003},
      {"sluice_scheduling_stalls_total{thread=\"lanes\"}", 5},
      {"sluice_scheduling_stall_seconds_total{thread=\"lanes\"}", 0.0009},
      {"sluice_scheduling_stall_longest_seconds{thread=\"worker\"}", 0.00006},
      {"sluice_scheduling_stalls_total{thread=\"helpers\"}", 2},
      {"sluice_compute_core_spans_total{core=\"5\"}", 40},
      {"sluice_compute_core_jobs_total{core=\"6\"}", 700},
      {"sluice_compute_core_busy_seconds_total{core=\"6\"}", 2.5},
      {"sluice_slow_launches_total", 9},
      {"sluice_launches_total", 11},
      {"sluice_jobs_submitted_total{kind=\"crypto\"}", 1000},
      {"sluice_jobs_late_total{kind=\"crypto\"}", 7},
      {"sluice_jobs_in_flight{kind=\"crypto\"}", 42},
      {"sluice_jobs_handed_over_total{kind=\"crypto\"}", 3},
      {"sluice_jobs_long_launches_total{kind=\"crypto\"}", 4},
      {"sluice_jobs_ended_total{kind=\"crypto\",outcome=\"completed\"}", 900},
      {"sluice_jobs_ended_total{kind=\"crypto\",outcome=\"refused_full\"}", 30},
      {"sluice_jobs_ended_total{kind=\"crypto\",outcome=\"expired\"}", 5},
      {"sluice_jobs_done_total{kind=\"crypto\",side=\"gpu\"}", 700},
      {"sluice_job_batches_total{kind=\"crypto\",side=\"cpu\"}", 10},
      {"sluice_worker_busy_seconds_total", 0.000005},
      {"sluice_lane_emitted_frames_total{lane=\"0\",port=\"left\",queue=\"0\"}", 3},
      {"sluice_lane_cloned_frames_total{lane=\"0\",port=\"left\",queue=\"0\"}", 2},
      {"sluice_lane_consumed_frames_total{lane=\"0\",port=\"left\",queue=\"0\"}", 5},
      {"sluice_lane_punted_frames_total{lane=\"0\",port=\"left\",queue=\"0\"}", 20},
      {"sluice_port_missed_frames_total{port=\"left\"}", 8},
      {"sluice_port_transmit_errors_total{port=\"left\"}", 6},
      {"sluice_port_to_host_lost_frames_total{port=\"left\"}", 3},
      {"sluice_port_from_host_lost_frames_total{port=\"left\"}", 2},
      {"sluice_port_up{port=\"right\"}", 0},
      {"sluice_port_twin_up{port=\"left\"}", 1},
      {"sluice_device_frames_total{device=\"cuda:0\"}", 2300},
      {"sluice_device_up{device=\"cpu\"}", 1},
      {"sluice_device_up{device=\"cuda:0\"}", 0},
      {"sluice_device_down_since_seconds{device=\"cuda:0\"}", 1'700'000'000},
      {"sluice_device_longest_gap_seconds{device=\"cuda:0\"}", 0.0123},
      {"sluice_device_frames_aside{device=\"cuda:0\"}", 64},
      {"sluice_device_rescued_frames_total{device=\"cpu\"}", 20},
      {"sluice_drops_total{reason=\"no_route\"}", 80},
      {"sluice_icmp_errors_total{reason=\"too_big\"}", 2},
      {"sluice_inspect_alerts_total", 3},
      {"sluice_inspect_flows", 5},
      {"sluice_latency_seconds_bucket{le=\"0.0002\"}", 2000},
      {"sluice_latency_seconds_bucket{le=\"+Inf\"}", 2900},
      {"sluice_latency_seconds_count", 2900},
      {"sluice_latency_seconds_sum", 0.58},
      {"sluice_latency_quantile_seconds{quantile=\"0.999\"}", 0.0007},
      {"sluice_latency_quantile_seconds_sum", 0.58},
      {"sluice_latency_quantile_seconds_count", 2900},
      {"sluice_healthy", 0},
      {"sluice_ailments{check=\"device_down\"}", 1},
      {"sluice_ailments{check=\"not_conserved\"}", 0},
  };
  for (const auto& [name, value] : expected) {
    ASSERT_TRUE(samples.contains(name)) << name;
    EXPECT_NEAR(samples[name], value, 1e-9) << name;
  }
  EXPECT_FALSE(samples.contains("sluice_port_twin_up{port=\"right\"}")) << "it has no twin";
}

TEST(Metrics, MetricsAreInBaseUnits) {
  Snapshot snapshot;
  snapshot.metrics = {{"a_us", "what it took, in microseconds", 1'500'000, true},
                      {"b_ns", "the shortest", 2'000, false},
                      {"c_bits", "bits a second", 800, false}};
  const std::string text = metrics_text(snapshot);
  for (const char* line :
       {"# HELP sluice_a_seconds_total What it took, in seconds\n", "\nsluice_a_seconds_total 1.5\n",
        "\nsluice_b_seconds 2e-06\n", "# HELP sluice_c_bytes Bytes a second\n", "\nsluice_c_bytes 100"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST(Metrics, HistogramNeverFalls) {
  double last_bound = 0;
  double last_count = 0;
  std::istringstream lines(metrics_text(sample_snapshot()));
  unsigned buckets = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string begin = "sluice_latency_seconds_bucket{le=\"";
    if (!line.starts_with(begin)) continue;
    const std::string bound = line.substr(begin.size(), line.find('"', begin.size()) - begin.size());
    const double at_most = bound == "+Inf" ? HUGE_VAL : std::stod(bound);
    const double count = std::stod(line.substr(line.find('}') + 2));
    EXPECT_GT(at_most, last_bound);
    EXPECT_GE(count, last_count);
    last_bound = at_most;
    last_count = count;
    ++buckets;
  }
  EXPECT_EQ(buckets, 6U);
  EXPECT_EQ(last_bound, HUGE_VAL);
}

TEST(Metrics, LabelsAreEscaped) {
  Snapshot snapshot;
  snapshot.version = "a\"b\\c\nd";
  const std::string text = metrics_text(snapshot);
  EXPECT_NE(text.find(R"(version="a\"b\\c\nd")"), std::string::npos);
  EXPECT_EQ(Exposition(text).problems, std::vector<std::string>());
}

}  // namespace
}  // namespace sluice::control
