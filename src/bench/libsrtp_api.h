// libsrtp's functions, loaded when they are asked for (libsrtp2.so.1), so that nothing else needs it.
#pragma once

#include <srtp2/srtp.h>

#include <string_view>

#include "base/error.h"

namespace sluice::cli::bench {

using ChooseLibsrtpSuite = decltype(&srtp_crypto_policy_set_rtp_default);

struct LibsrtpApi {
  decltype(&srtp_init) init;          // once, before all others
  decltype(&srtp_shutdown) shutdown;  // then init() may come again
  decltype(&srtp_create) create;
  decltype(&srtp_dealloc) dealloc;
  decltype(&srtp_protect) protect;
  decltype(&srtp_unprotect) unprotect;
  ChooseLibsrtpSuite cm_128_80, cm_128_32, cm_256_80, cm_256_32, gcm_128, gcm_256;

  // An Error when the library is not there or lacks a function. Any thread.
  static Expected<LibsrtpApi> load();
  // By its SDP name; null: it has it not.
  ChooseLibsrtpSuite suite(std::string_view name) const;
};

}  // namespace sluice::cli::bench
