// Around the pipeline of a gateway that is calibrated: an element in front of the others and one behind them. They
// bring an element's own traffic into the frames (engine/calibration.h), and take the time of each inline batch and its
// bytes. The time is from the first frame's classifying until the last one's applying, less what the traffic took. They
// also take what classifying and applying take by themselves.
//
// Thread-safety: as of engine::Element; batches() any thread. Cost: the time-stamp counter three times a burst, and
// three times a batch.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engine/calibration.h"
#include "engine/histogram.h"
#include "engine/pipeline.h"

namespace sluice::cli {

class TimedPipeline {
 public:
  // The pipeline with both elements around its own. What they share lives as long as the result's elements or this.
  // `traffic` null: frames stay as they come.
  TimedPipeline(std::unique_ptr<engine::Pipeline> inner, std::unique_ptr<engine::Traffic> traffic);
  ~TimedPipeline();
  std::unique_ptr<engine::Pipeline> take() { return std::move(around_); }

  // Of all lanes: ticks of inline batches, and bytes of batches, whatever computed them; and ticks of collecting a
  // burst, and of forwarding a batch but for its last burst's transmit. A burst that took longer than the gap by which
  // the engine reports that a thread was kept from its work (engine/stall.h) is the machine's, and left out.
  struct Batches {
    engine::HistogramSnapshot times, bytes, rounds, forwardings;
  };
  Batches batches() const;
  const engine::Traffic* traffic() const;  // null: none

  struct Shared;

 private:
  std::shared_ptr<Shared> shared_;
  std::unique_ptr<engine::Pipeline> around_;
};

}  // namespace sluice::cli
