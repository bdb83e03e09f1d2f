// Does jobs on a CPU core by intel-ipsec-mb: AES by as many blocks at once as the instruction set has, HMAC and CBC's
// sealing of up to 16 packets in the lanes of a vector, AEADs packet by packet.
//
// Thread-safety: one Cpu for each thread. Cost: no allocation in run(); HMAC runs at full speed from 16 jobs of a hash
// at a time, CBC's sealing from 16 of a key length, both at a tenth of it for a single one; the others at any number
// (docs/srtp.md has figures). Jobs of both directions, all algorithms and any lengths may be mixed. Memory: 30 KB.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/error.h"
#include "crypto/job.h"
#include "crypto/key_table.h"

namespace sluice::crypto {

class Cpu {
 public:
  // Fails if the library finds no instruction set that it can use, or its own self-test has failed.
  static Expected<Cpu> make();
  Cpu(Cpu&&) noexcept;
  Cpu& operator=(Cpu&&) noexcept;
  ~Cpu();

  // Does `jobs` and writes a verdict for each; `verdicts` is as long as `jobs`, and so is `sums` where any job asks for
  // them. Sums are passes over the packets of their own, before and after.
  void run(const KeyTable& keys, std::span<const Job> jobs, std::span<Verdict> verdicts, std::span<Sums> sums = {});

  // The instruction set in use: "SSE", "AVX", "AVX2", "AVX512".
  std::string_view instruction_set() const;

 private:
  struct State;
  explicit Cpu(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sluice::crypto
