#include "bench/memory_use.h"

#include <gtest/gtest.h>

#include <sstream>

namespace sluice::cli::bench {
namespace {

TEST(MemoryUse, MappingsOfOneNameAreAddedUp) {
  std::istringstream smaps(
      "55d0c0000000-55d0c0200000 rw-p 00000000 00:00 0                          [heap]\n"
      "Size:               2048 kB\n"
      "Rss:                 512 kB\n"
      "VmFlags: rd wr mr\n"
      "7f0000000000-7f0000100000 rw-p 00000000 00:00 0 \n"
      "Rss:                  64 kB\n"
      "7f0000200000-7f0000300000 rw-s 00000000 00:01 1050                       /memfd:nohuge (deleted)\n"
      "Rss:                 100 kB\n"
      "7f0000400000-7f0000500000 rw-p 00000000 00:00 0 \n"
      "Rss:                   4 kB\n");
  EXPECT_EQ(read_resident(smaps),
            (Resident{{"[heap]", 512 << 10}, {"anonymous", 68 << 10}, {"/memfd:nohuge (deleted)", 100 << 10}}));
}

TEST(MemoryUse, WhatHasGrownMostComesFirst) {
  const Resident before{{"[heap]", 1 << 20}, {"anonymous", 2 << 20}, {"/lib/a.so", 4 << 10}};
  const Resident after{{"[heap]", 2 << 20}, {"anonymous", 1 << 20}, {"/lib/a.so", 8 << 10}, {"/lib/b.so", 2 << 10}};
  EXPECT_EQ(growth_text(before, after, 2), "+1024 KB [heap], +4 KB /lib/a.so");
  EXPECT_EQ(growth_text(before, after, 9), "+1024 KB [heap], +4 KB /lib/a.so, +2 KB /lib/b.so");
  EXPECT_EQ(growth_text(after, after, 9), "nothing");
}

TEST(MemoryUse, ThisProcessHasSomeOfItsOwn) {
  std::uint64_t all = 0;
  for (const auto& [name, bytes] : resident_by_mapping()) {
    all += bytes;
  }
  EXPECT_GT(all, 1U << 20);
}

}  // namespace
}  // namespace sluice::cli::bench
