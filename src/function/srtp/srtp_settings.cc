#include "function/srtp/srtp_settings.h"

namespace sluice::function {

const std::vector<Option<Srtp::SrtpOptions>>& srtp_settings() {
  using Options = Srtp::SrtpOptions;
  static const std::vector<Option<Options>> all = {
      option::number(
          "max_keys", &Options::max_keys, {2, 1 << 22, "keys"},
          "capacity for keys of all streams that the file, the API and RTSP bring, and of those that were taken "
          "away for a moment longer; a medium of RTSP's takes two or three. A stream takes one for each "
          "master key, two where RTP and RTCP share it, and four times as many with a key derivation rate "
          "(`KDR`). 1.5 KB each"),
      option::word("unprotected", &Options::drops_unprotected, {{"pass", false}, {"drop", true}},
                   "UDP of no stream that looks like RTP or RTCP ([what does](srtp.md#what-nobody-protects)): "
                   "`\"pass\"`, since a gateway carries other UDP, too, or `\"drop\"`, counted as `srtp_unprotected`. "
                   "The RTSP servers' media have a key of their own, in `[srtp.rtsp]`")
          .reloadable()};
  return all;
}

}  // namespace sluice::function
