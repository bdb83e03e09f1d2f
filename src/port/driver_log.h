// Keeps what DPDK logs while a device opens, so that a refusal is one sentence with the driver's own words in it, and
// not some lines of the driver's with a sentence behind them.
//
// Between construction and destruction DPDK's log goes nowhere else; destruction logs what nobody took (what some
// drivers say at every start for debugging), errors as warnings, and DPDK's log is part of ours again (dpdk_log.h).
// Control thread, one at a time.
#pragma once

#include <string>

namespace sluice::port {

class DriverLog {
 public:
  DriverLog();
  ~DriverLog();
  DriverLog(const DriverLog&) = delete;
  DriverLog& operator=(const DriverLog&) = delete;

  // The driver's lines in one, each once, without those about the driver and what it always says; empty when it said
  // nothing. Later calls answer with later lines.
  std::string take();
};

}  // namespace sluice::port
