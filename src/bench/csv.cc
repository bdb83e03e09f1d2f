#include "bench/csv.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace sluice::cli::bench {
namespace {

std::string or_empty(double value, int digits) {
  return value == 0 ? "" : fmt::format("{:.{}f}", value, digits);
}

// Readers of these files split them at commas.
std::string words(std::string text) {
  std::replace(text.begin(), text.end(), ',', ';');
  return text;
}

}  // namespace

std::string csv_header() {
  return "bench,label,mpps,gbytes,share,p50_us,p99_us,p999_us,max_us,deadline_misses,lost,"
         "frames,goal,ceiling_gbytes,deadline_us,ns_per_frame,ns_low,ns_high,late_stalled,refused,setting,device_max_"
         "us,"
         "dropped,rounds,mpps_low,mpps_high";
}

std::string csv_line(const std::string& bench, const std::string& label, const Outcome& o, const Yardsticks& y) {
  return fmt::format(
      "{},{},{:.3f},{:.3f},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", bench, words(label),
      o.mpps(), o.gbytes(), or_empty(y.share, 4), or_empty(o.p50_us, 1), or_empty(o.p99_us, 1), or_empty(o.p999_us, 1),
      or_empty(o.max_us, 1), o.deadline_misses, o.offered_missed, o.frames, or_empty(y.goal, 2),
      or_empty(y.ceiling_gbytes, 2), or_empty(y.deadline_us, 0), or_empty(y.ns_per_frame, 2), or_empty(y.ns_low, 2),
      or_empty(y.ns_high, 2), o.misses_stalled, o.refused, words(y.setting), or_empty(o.device_max_us, 1), o.dropped,
      o.rounds == 0 ? "" : std::to_string(o.rounds), or_empty(o.mpps_low, 3), or_empty(o.mpps_high, 3));
}

Expected<void> check_csv(const std::string& path, const std::string& header) {
  if (std::filesystem::exists(path)) {
    std::ifstream in(path);
    std::string first;
    if (std::getline(in, first) && first != header) {
      return make_error("--csv " + path + ": its first line is not that of these rows; name another file");
    }
  }
  if (std::FILE* file = std::fopen(path.c_str(), "a")) {
    std::fclose(file);
    return {};
  }
  return make_error("--csv " + path + ": cannot be written");
}

Expected<void> append_line(const std::string& path, const std::string& header, const std::string& line) {
  std::error_code ec;
  const bool fresh = !std::filesystem::exists(path, ec) || std::filesystem::is_empty(path, ec);
  std::ofstream file(path, std::ios::app);
  if (fresh) {
    file << header << "\n";
  }
  file << line << "\n";
  return file.flush() ? Expected<void>{} : make_error(path + ": a row was not written");
}

void append_csv(const BenchOptions& options, const std::string& bench, const std::string& label, const Outcome& outcome,
                const Yardsticks& yardsticks) {
  if (options.csv.empty()) {
    return;
  }
  if (const auto done = append_line(options.csv, csv_header(), csv_line(bench, label, outcome, yardsticks)); !done) {
    std::fprintf(stderr, "bench: %s: the row of %s was not written\n", options.csv.c_str(), label.c_str());
  }
}

}  // namespace sluice::cli::bench
