#include "bench/libsrtp_api.h"

#include <dlfcn.h>

#include <string>
#include <utility>

namespace sluice::cli::bench {
namespace {

constexpr const char* library_name = "libsrtp2.so.1";

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

Expected<LibsrtpApi> LibsrtpApi::load() {
  void* const library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return make_error(std::string("no libsrtp: ") + dlerror());
  LibsrtpApi api = {};
  if (!find(library, "srtp_init", api.init) || !find(library, "srtp_shutdown", api.shutdown) ||
      !find(library, "srtp_create", api.create) || !find(library, "srtp_dealloc", api.dealloc) ||
      !find(library, "srtp_protect", api.protect) || !find(library, "srtp_unprotect", api.unprotect) ||
      !find(library, "srtp_crypto_policy_set_rtp_default", api.cm_128_80) ||
      !find(library, "srtp_crypto_policy_set_aes_cm_128_hmac_sha1_32", api.cm_128_32) ||
      !find(library, "srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80", api.cm_256_80) ||
      !find(library, "srtp_crypto_policy_set_aes_cm_256_hmac_sha1_32", api.cm_256_32) ||
      !find(library, "srtp_crypto_policy_set_aes_gcm_128_16_auth", api.gcm_128) ||
      !find(library, "srtp_crypto_policy_set_aes_gcm_256_16_auth", api.gcm_256)) {
    return make_error(std::string(library_name) + " lacks a function: " + dlerror());
  }
  return api;
}

ChooseLibsrtpSuite LibsrtpApi::suite(std::string_view name) const {
  const std::pair<std::string_view, ChooseLibsrtpSuite> known[] = {
      {"AES_CM_128_HMAC_SHA1_80", cm_128_80}, {"AES_CM_128_HMAC_SHA1_32", cm_128_32},
      {"AES_256_CM_HMAC_SHA1_80", cm_256_80}, {"AES_256_CM_HMAC_SHA1_32", cm_256_32},
      {"AEAD_AES_128_GCM", gcm_128},          {"AEAD_AES_256_GCM", gcm_256}};
  for (const auto& [of, choose] : known) {
    if (of == name) return choose;
  }
  return nullptr;
}

}  // namespace sluice::cli::bench
