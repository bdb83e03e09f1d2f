#include "crypto/ipsec_mb.h"

#include <string>

namespace sluice::crypto {

Expected<ChosenManager> make_manager() {
  ChosenManager chosen{Manager(alloc_mb_mgr(0)), IMB_ARCH_NONE};
  if (!chosen.manager) {
    return make_error("intel-ipsec-mb: no memory for a manager");
  }
  init_mb_mgr_auto(chosen.manager.get(), &chosen.instruction_set);
  if (chosen.instruction_set < IMB_ARCH_SSE) {
    return make_error("intel-ipsec-mb: this CPU has no AES instructions (AES-NI)");
  }
  if (const int error = imb_get_errno(chosen.manager.get()); error != 0) {
    return make_error(std::string("intel-ipsec-mb: ") + imb_get_strerror(error));
  }
  const std::uint64_t features = chosen.manager->features;
  if ((features & IMB_FEATURE_SELF_TEST) != 0 && (features & IMB_FEATURE_SELF_TEST_PASS) == 0) {
    return make_error("intel-ipsec-mb: its self-test fails on this CPU");
  }
  return chosen;
}

}  // namespace sluice::crypto
