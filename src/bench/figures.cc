#include "bench/figures.h"

#include <spdlog/fmt/fmt.h>

#include <cstdio>

#include "bench/csv.h"
#include "bench/gpu_only.h"

namespace sluice::cli::bench {

std::string figures_csv_header() {
  return "figure,series,x_name,x,y_name,y";
}

void add_point(const BenchOptions& options, const FigurePoint& point) {
  std::printf("%s: %s: %s %g: %.4g %s\n", point.figure.c_str(), point.series.c_str(), point.x_name.c_str(), point.x,
              point.y, point.y_name.c_str());
  std::fflush(stdout);
  if (options.csv.empty()) {
    return;
  }
  const auto written = append_line(
      options.csv, figures_csv_header(),
      fmt::format("{},{},{},{:g},{},{:.6g}", point.figure, point.series, point.x_name, point.x, point.y_name, point.y));
  if (!written) {
    std::fprintf(stderr, "bench figures: %s\n", written.error().message.c_str());
  }
}

int bench_figures(const BenchOptions& options) {
  return run_gpu_bench("figures", batch_figures_bytes() + (std::uint64_t{4} << 30), options,
                       [&](Goals&) -> Expected<void> {
                         if (auto ceilings = print_ceilings(options, true); !ceilings) {
                           return tl::unexpected(ceilings.error());
                         }
                         auto ok = options.only == "engine" ? Expected<void>{} : batch_figures(options);
                         return ok && options.only != "batches" ? engine_figures(options) : ok;
                       });
}

}  // namespace sluice::cli::bench
