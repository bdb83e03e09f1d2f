// The trait of an element that reads tables from files and keeps them in DPDK's memory. Who calls what:
//   check   read() without DPDK, then memory(): whether the tables fit into [memory] size
//   start   the check first; then the element is made again, and take_read() hands over what the check has read
//   reload  read() of the changed files, for Element::reload()
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

// Called now and then while something is loaded: `what` ("routes"), how many are done, and of how many (0: not known).
// False stops the loading.
using TableProgress = std::function<bool(std::string_view what, std::size_t done, std::size_t total)>;

class Tables {
 public:
  static constexpr std::string_view trait_name = "tables";
  virtual ~Tables() = default;

  struct Memory {
    std::uint64_t bytes = 0;             // that prepare() will allocate
    std::vector<std::string_view> keys;  // settings of the element that lower it; empty: nothing is allocated
  };
  virtual Memory memory() const = 0;

  // From now on the thread that loads calls `progress` during read(), prepare() and reload().
  virtual void watch_loading(TableProgress progress) = 0;

  // Reads and checks all files, and keeps what it has read for prepare(), take_read() or another element's reload().
  // Without it those read the files themselves. Needs no DPDK. An Error has a line for each mistake.
  virtual Expected<void> read() = 0;

  // Moves here what `checked` has read: the tables of an element of the same type and settings. Called before
  // prepare().
  virtual void take_read(Tables& checked) = 0;

  // Called when the program ends: the element lets the tables be, and DPDK frees their memory as a whole. To remove
  // them entry by entry takes seconds.
  virtual void leave_to_eal() = 0;

  // What the files have that is not in force, though it is no mistake: a line each. Called after read().
  virtual std::vector<std::string> notes() const { return {}; }
};

}  // namespace sluice::engine
