// Which rows `bench ipsec` has, of its own or as the command line says, and what they are aimed at.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/bench.h"
#include "bench/goals.h"
#include "bench/ipsec_bed.h"

namespace sluice::cli::bench {

struct IpsecCase {
  IpsecTraffic traffic;
  bool on_cores = false;  // beside a GPU: also on the lanes' cores, and by rte_ipsec
};
struct IpsecCases {
  std::vector<IpsecCase> cases;
  std::vector<ipsec::Direction> directions;
};
// Every list of --only, --algorithms, --sizes and --sas with every other one; without these the bench's own. Errors:
// what is in none of the lists, with its option.
Expected<IpsecCases> ipsec_cases(const BenchOptions& options);

// Of one device, or of rte_ipsec.
class IpsecResults {
 public:
  struct Result {
    double share = 0;  // of the both-ways ceiling; 0: there is none
    double gbits = 0;  // of frames in clear
  };
  void add(ipsec::Direction direction, const IpsecTraffic& traffic, const Result& result);
  // Those goals whose figures are there. `srtp_share`: what SRTP reached of the ceiling in this run; 0: not measured.
  void judge(Goals& goals, double srtp_share) const;
  // Null: there is none.
  const Result* find(ipsec::Direction direction, const IpsecTraffic& traffic) const;

 private:
  std::map<std::string, Result> results_;
};

const char* direction_text(ipsec::Direction direction);

}  // namespace sluice::cli::bench
