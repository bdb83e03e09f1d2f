#include "function/srtp/drop_reasons.h"

namespace sluice::function {

packet::Reason reason_of(srtp::Status status) {
  switch (status) {
    case srtp::Status::ok:
      return packet::no_reason;
    case srtp::Status::too_short:
    case srtp::Status::bad_version:
    case srtp::Status::bad_header:
      return srtp_malformed;
    case srtp::Status::no_capacity:
      return srtp_too_big;
    case srtp::Status::auth_failed:
      return srtp_auth_failed;
    case srtp::Status::replayed:
      return srtp_replayed;
    case srtp::Status::too_old:
      return srtp_too_old;
    case srtp::Status::key_expired:
      return srtp_key_expired;
    case srtp::Status::no_key:
      return srtp_no_key;
    case srtp::Status::no_stream:
      return srtp_no_ssrc;
    case srtp::Status::too_many_in_flight:
      return srtp_too_many_in_flight;
  }
  return srtp_malformed;
}

}  // namespace sluice::function
