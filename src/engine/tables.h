// The trait of an element that has tables which it reads from files, and keeps in DPDK's memory:
//   a check   reads the files without DPDK, and says whether the tables fit into [memory] size;
//   a start   makes the element a second time, with DPDK, and hands over what the check has read;
//   a reload  reads the files anew, for Element::reload().
//
// Thread-safety: the thread that starts, checks or reloads, one at a time; leave_to_eal() on the control thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::engine {

// Called now and then with what is being loaded ("routes"), and how many of how many (0: not known) are done. False:
// stop.
using TableProgress = std::function<bool(std::string_view what, std::size_t done, std::size_t total)>;

class Tables {
 public:
  static constexpr std::string_view trait_name = "tables";
  virtual ~Tables() = default;

  struct Memory {
    std::uint64_t bytes = 0;             // that prepare() takes
    std::vector<std::string_view> keys;  // of the element's section, which lower it; none: nothing is taken
  };
  virtual Memory memory() const = 0;

  // From now on called with how far read(), prepare() and reload() are, by the thread that loads.
  virtual void watch_loading(TableProgress progress) = 0;

  // Reads and checks the whole of the files, and keeps it for prepare(), take_read() or another element's
  // reload(), which otherwise read for themselves. Needs no DPDK. An Error has a line for each mistake.
  virtual Expected<void> read() = 0;

  // What `checked`, the tables of an element of the same type and settings, have read; before prepare().
  virtual void take_read(Tables& checked) = 0;

  // For a program that ends: the tables are not taken apart entry by entry, which takes seconds. The element does
  // nothing more with them.
  virtual void leave_to_eal() = 0;

  // What of the files is not in force though there is no mistake, a line each; after read().
  virtual std::vector<std::string> notes() const { return {}; }
};

}  // namespace sluice::engine
