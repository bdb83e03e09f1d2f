#include "control/busy_cores.h"

#include <gtest/gtest.h>

namespace sluice::control {
namespace {

TEST(BusyCores, ReadsTheTimesOfEachCore) {
  const auto times = core_times(
      "cpu  99 99 99 99 99 99 99 99 0 0\n"
      "cpu0 1 2 4 100 10 8 16 5000 0 0\n"
      "cpu12 7 0 0 3 0 0 0 0 0 0\n"
      "intr 5 0 0\ncpufreq 1\n");
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times.at(0).busy, 31U);
  EXPECT_EQ(times.at(0).idle, 110U);
  EXPECT_EQ(times.at(12).busy, 7U);
}

// A machine whose core 3 is busy for `percent[i]` of the i-th window, and all others never.
class Machine {
 public:
  explicit Machine(std::vector<unsigned> percent) : percent_(std::move(percent)) {}
  std::string stat() const {
    return "cpu2 0 0 0 " + std::to_string(1000 + 10 * waits) + " 0 0 0 0\ncpu3 " + std::to_string(busy_) + " 0 0 " +
           std::to_string(1000 + 10 * waits - busy_) + " 0 0 0 0\n";
  }
  void wait() { busy_ += percent_.at(waits++) / 10; }
  Expected<void> check(const engine::Options& options) {
    return check_cores_are_free(
        options, [this] { return stat(); }, [this](std::chrono::milliseconds) { wait(); });
  }
  std::size_t waits = 0;

 private:
  std::vector<unsigned> percent_;
  unsigned busy_ = 0;
};

engine::Options with_cores(std::vector<int> cores) {
  engine::Options options;
  options.cores = std::move(cores);
  return options;
}

TEST(BusyCores, ACoreThatStaysBusyIsRefusedWithWhatToDo) {
  Machine machine({100, 90, 100});
  const auto checked = machine.check(with_cores({2, 3}));
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message,
            "[engine] cores: core 3 is 90% busy with other work (ps -eLo psr,pcpu,pid,comm --sort=-pcpu says whose): "
            "move that, name another core, or set busy_cores = \"allow\"");
}

TEST(BusyCores, AMomentOfWorkIsNot) {
  Machine machine({100, 50});
  EXPECT_TRUE(machine.check(with_cores({3})));
  EXPECT_EQ(machine.waits, 2U);
}

TEST(BusyCores, OnlyCoresThatAreNamedAreLookedAt) {
  Machine none({100, 100, 100});
  EXPECT_TRUE(none.check({}));
  EXPECT_EQ(none.waits, 0U) << "no time lost";
  Machine other({100, 100, 100});
  EXPECT_TRUE(other.check(with_cores({2, 777})));
  engine::Options options;
  options.forwarder_cores = {3};
  options.compute_cores = {3};
  options.worker_core = 3;
  Machine busy({100, 100, 100});
  const std::string lines = busy.check(options).error().message;
  EXPECT_EQ(lines.rfind("[engine] forwarder_cores: core 3 is 100%", 0), 0U) << lines;
  EXPECT_NE(lines.find("\n[engine] compute_cores: core 3"), std::string::npos) << lines;
  EXPECT_NE(lines.find("\n[engine] worker_core: core 3"), std::string::npos) << lines;
  options.device = "cpu";  // has no worker
  EXPECT_EQ(Machine({100, 100, 100}).check(options).error().message.find("worker_core"), std::string::npos);
}

}  // namespace
}  // namespace sluice::control
