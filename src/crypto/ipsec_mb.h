// A manager of intel-ipsec-mb as a value. For .cc files of this room only: nothing else sees the library's header.
#pragma once

#include <intel-ipsec-mb.h>

#include <memory>

#include "base/error.h"

namespace sluice::crypto {

struct FreeManager {
  void operator()(IMB_MGR* manager) const { free_mb_mgr(manager); }
};
using Manager = std::unique_ptr<IMB_MGR, FreeManager>;

struct ChosenManager {
  Manager manager;
  IMB_ARCH instruction_set;
};
// For the best instruction set of this CPU.
Expected<ChosenManager> make_manager();

}  // namespace sluice::crypto
