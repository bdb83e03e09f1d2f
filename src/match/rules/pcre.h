// Regular expressions of rules: `/pattern/flags` to a Pcre, and a Pcre to PCRE2's compiled code.
//
// Flags: i s m x A E G are Perl's and PCRE's (caseless, dotall, multiline, extended, anchored, dollar_endonly,
// ungreedy). R: relative. O: with a larger match limit. B: rawbytes, the payload. U I P Q H D M C S Y V W Z: the buffer
// http_uri, http_raw_uri, request body, response body, http_header, http_raw_header, http_method, http_cookie,
// http_stat_code, http_stat_msg, http_user_agent, http_host, http_raw_host.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "match/rules/rule.h"

struct pcre2_real_code_8;

namespace sluice::match {

struct PcreDeleter {
  void operator()(pcre2_real_code_8* code) const;
};
using PcreCode = std::unique_ptr<pcre2_real_code_8, PcreDeleter>;

// Not JIT-compiled. The code may be used by any number of threads at once; it is about 0.2 to 2 KB.
Expected<PcreCode> compile(const Pcre& pcre);

// `sticky`: the buffer that is in force where the option stands; a flag may name another. The pattern is compiled to
// see that it can be. Named groups that Suricata stores in variables (?P<flow_x>...) are refused.
Expected<Pcre> parse_pcre(std::string_view text, Buffer sticky);

}  // namespace sluice::match
