#define PCRE2_CODE_UNIT_WIDTH 8
#include "match/rules/pcre.h"

#include <pcre2.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/quote.h"
#include "match/rules/words.h"

namespace sluice::match {
namespace {

constexpr std::size_t longest_pattern = 16 << 10;
// PCRE2 may not read patterns that nest deeper: it recurses, and a rule's file must not end the program.
constexpr std::uint32_t deepest_parentheses = 100;

struct OptionFlag {
  char flag;
  std::uint32_t option;
};
constexpr auto option_flags = std::to_array<OptionFlag>({{'i', PCRE2_CASELESS},
                                                         {'s', PCRE2_DOTALL},
                                                         {'m', PCRE2_MULTILINE},
                                                         {'x', PCRE2_EXTENDED},
                                                         {'A', PCRE2_ANCHORED},
                                                         {'E', PCRE2_DOLLAR_ENDONLY},
                                                         {'G', PCRE2_UNGREEDY}});
struct BufferFlag {
  char flag;
  Buffer buffer;
};
constexpr auto buffer_flags = std::to_array<BufferFlag>({{'U', Buffer::http_uri},
                                                         {'I', Buffer::http_raw_uri},
                                                         {'P', Buffer::http_request_body},
                                                         {'Q', Buffer::http_response_body},
                                                         {'H', Buffer::http_header},
                                                         {'D', Buffer::http_raw_header},
                                                         {'M', Buffer::http_method},
                                                         {'C', Buffer::http_cookie},
                                                         {'S', Buffer::http_stat_code},
                                                         {'Y', Buffer::http_stat_msg},
                                                         {'V', Buffer::http_user_agent},
                                                         {'W', Buffer::http_host},
                                                         {'Z', Buffer::http_raw_host},
                                                         {'B', Buffer::payload}});

// Empty: it was a flag, and is in `pcre` now.
std::string read_flag(char flag, Pcre& pcre, bool& has_buffer) {
  for (const OptionFlag& one : option_flags) {
    if (one.flag == flag) {
      pcre.options |= one.option;
      return {};
    }
  }
  for (const BufferFlag& one : buffer_flags) {
    if (one.flag == flag) {
      if (has_buffer && pcre.buffer != one.buffer) return "its flags name two buffers";
      has_buffer = true;
      pcre.buffer = one.buffer;
      return {};
    }
  }
  if (flag != 'R' && flag != 'O') return in_quotes(std::string_view(&flag, 1)) + " is no flag of a pcre";
  (flag == 'R' ? pcre.relative : pcre.larger_limit) = true;
  return {};
}

// Where the pattern begins: after / or after m and any delimiter.
std::size_t begin_of(std::string_view text) {
  if (text.starts_with('/')) return 1;
  return text.starts_with('m') && text.size() > 1 ? 2 : 0;
}

Expected<Pcre> read_parts(std::string_view text, Buffer sticky) {
  Pcre pcre;
  pcre.buffer = sticky;
  if (text.starts_with('!')) {
    pcre.negated = true;
    text = trimmed(text.substr(1));
  }
  text = unquoted(text);  // as Suricata, which takes it without quotes as well
  const std::size_t begin = begin_of(text);
  const std::size_t end = begin == 0 ? 0 : text.rfind(text[begin - 1]);
  if (begin == 0 || end == std::string_view::npos || end < begin) {
    return make_error(in_quotes(text) + " is not /PATTERN/FLAGS");
  }
  pcre.pattern = text.substr(begin, end - begin);
  bool has_buffer = false;
  for (const char flag : text.substr(end + 1)) {
    if (const std::string wrong = read_flag(flag, pcre, has_buffer); !wrong.empty()) return make_error(wrong);
  }
  return pcre;
}

// Suricata stores what a group of these names captures in a variable.
bool captures_variable(std::string_view pattern) {
  return pattern.find("(?P<pkt_") != std::string_view::npos || pattern.find("(?P<flow_") != std::string_view::npos;
}

}  // namespace

void PcreDeleter::operator()(pcre2_real_code_8* code) const {
  pcre2_code_free(code);
}

Expected<PcreCode> compile(const Pcre& pcre) {
  if (pcre.pattern.size() > longest_pattern) return make_error("its pattern is longer than 16 KiB");
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  if (context == nullptr) return make_error("no memory to compile it");
  pcre2_set_parens_nest_limit(context.get(), deepest_parentheses);
  int error = 0;
  PCRE2_SIZE at = 0;
  // Each byte of the traffic is a character: no pattern may switch to UTF.
  PcreCode code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pcre.pattern.data()), pcre.pattern.size(),
                              pcre.options | PCRE2_NEVER_UTF | PCRE2_NEVER_UCP, &error, &at, context.get()));
  if (code == nullptr) {
    std::array<PCRE2_UCHAR, 160> text{};
    pcre2_get_error_message(error, text.data(), text.size());
    return make_error("its pattern does not compile: " + std::string(reinterpret_cast<const char*>(text.data())) +
                      " at " + in_quotes(std::string_view(pcre.pattern).substr(std::min(at, pcre.pattern.size()))));
  }
  return code;
}

Expected<Pcre> parse_pcre(std::string_view text, Buffer sticky) {
  auto pcre = read_parts(text, sticky);
  if (!pcre) return pcre;
  if (captures_variable(pcre->pattern)) return make_error("captures into variables are not honoured");
  if (const auto code = compile(*pcre); !code) return tl::unexpected(code.error());
  return pcre;
}

}  // namespace sluice::match
