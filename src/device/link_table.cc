#include <cstdio>

#include "device/link_probe.h"

namespace sluice::device {
namespace {

template <typename... Values>
void line(std::string& out, const char* format, Values... values) {
  char text[160];
  std::snprintf(text, sizeof text, format, values...);
  out += text;
  out += '\n';
}

}  // namespace

std::string link_table(const GpuInfo& gpu, const LinkCeilings& c) {
  std::string out;
  line(out, "link to %s (%s), GB/s of payload, verified", gpu.name.c_str(), gpu.pci.c_str());
  line(out, "  %-44s %8s %8s %8s", "copy engine", "up", "down", "both");
  line(out, "  %-44s %8.1f %8.1f %8.1f", "large chunks", c.large.up, c.large.down, c.large.both);
  for (const auto& chunk : c.chunks) line(out, "  chunks of %4zu KiB %45s %8.1f", chunk.bytes / 1024, "", chunk.both);
  for (const auto& rows : c.rows)
    line(out, "  %5u rows of %5u B every 2,048 B %11s %8.1f %8.1f %8.1f", rows.count, rows.bytes, "", rows.rate.up,
         rows.rate.down, rows.rate.both);
  line(out, "  %-44s %8s %8s %8s", "a kernel reads frames in host memory", "in order", "runs 32", "shuffled");
  for (const auto& reads : c.reads)
    line(out, "  frames of %5u B %28s %8.1f %8.1f %8.1f", reads.bytes, "", reads.in_order, reads.runs_of_32,
         reads.shuffled);
  for (const auto& writes : c.writes)
    line(out, "  a kernel writes frames of %5u B %12s %8.1f", writes.bytes, "", writes.in_order);
  line(out, "  %-44s %8s %8s", "latency, us", "median", "p99");
  line(out, "  %-44s %8.2f %8.2f", "empty kernel, launch and synchronise", c.launch_median_us, c.launch_p99_us);
  if (c.flag_median_us > 0)
    line(out, "  %-44s %8.2f %8.2f", "flag in host memory, there and back", c.flag_median_us, c.flag_p99_us);
  for (const auto& copy : c.host_copies)
    line(out, "  memcpy by %2u CPU threads %18s %8.1f", copy.threads, "", copy.rate);
  return out;
}

}  // namespace sluice::device
