// The HTTP cases of suricata-verify that look for plain contents: each capture goes through the flow table, the streams
// and HTTP, and a rule's contents are in the buffer it names, or not, as the case says. Data:
// tests/support/public_data.h.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "../tests/support/capture_file.h"
#include "../tests/support/public_data.h"
#include "flow/http/text.h"
#include "flow/recorder.h"

namespace sluice::flow {
namespace {

using nlohmann::json;

struct Content {
  std::string buffer, bytes;
  bool negated = false, nocase = false;
  std::size_t depth = std::string::npos;
};
struct Rule {
  int sid = 0;
  std::vector<Content> contents;
};

std::string unquote(std::string_view text) {  // "a|0d 0a|b", with escapes
  std::string out;
  bool hex = false;
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '|') {
      hex = !hex;
    } else if (hex && text[i] != ' ') {
      digits += text[i];
      if (digits.size() == 2) {
        out += static_cast<char>(std::stoi(digits, nullptr, 16));
        digits.clear();
      }
    } else if (!hex) {
      i += text[i] == '\\' ? 1 : 0;
      out += text[i];
    }
  }
  return out;
}

// The options of a rule; nothing, when it has one that this test does not know.
std::optional<Rule> read_rule(const std::string& line) {
  static const std::map<std::string, std::string> sticky = {
      {"file_data", "response_body"}, {"file.data", "response_body"},          {"http.host", "host"},
      {"http.stat_code", "status"},   {"http.response_body", "response_body"}, {"http.uri", "uri"},
      {"http.uri.raw", "uri_raw"}};
  static const std::map<std::string, std::string> modifiers = {
      {"http_uri", "uri"},        {"http_raw_uri", "uri_raw"},
      {"http_method", "method"},  {"http_client_body", "request_body"},
      {"http_header", "headers"}, {"http_cookie", "cookie"}};
  Rule rule;
  std::string buffer;
  std::string options = line.substr(line.find('(') + 1);
  std::size_t at = 0;
  while (at < options.size() && options[at] != ')') {
    std::size_t end = at;
    bool quoted = false;
    for (; end < options.size() && (quoted || options[end] != ';'); ++end) {
      quoted = quoted != (options[end] == '"' && options[end - 1] != '\\');
    }
    const std::string option(http::trim(std::string_view(options).substr(at, end - at)));
    at = options.find_first_not_of(' ', end + 1);
    const std::size_t colon = option.find(':');
    const std::string name = option.substr(0, colon);
    std::string value = colon == std::string::npos ? "" : std::string(http::trim(option.substr(colon + 1)));
    if (sticky.contains(name)) {
      buffer = sticky.at(name);
    } else if (modifiers.contains(name) && !rule.contents.empty()) {
      rule.contents.back().buffer = modifiers.at(name);
    } else if (name == "content") {
      const bool negated = value.starts_with('!');
      value = value.substr(value.find('"') + 1);
      rule.contents.push_back({buffer, unquote(std::string_view(value).substr(0, value.rfind('"'))), negated});
    } else if (name == "nocase") {
      rule.contents.back().nocase = true;
    } else if (name == "depth") {
      rule.contents.back().depth = std::stoul(value);
    } else if (name == "sid") {
      rule.sid = std::stoi(value);
    } else if (name != "msg" && name != "rev" && name != "classtype" && name != "flow" && name != "priority") {
      return std::nullopt;
    }
  }
  const bool all_http = std::all_of(rule.contents.begin(), rule.contents.end(),
                                    [](const Content& content) { return !content.buffer.empty(); });
  return !rule.contents.empty() && all_http ? std::optional(rule) : std::nullopt;
}

std::vector<std::string> buffer_of(const test::Exchange& exchange, const std::string& name) {
  static const std::map<std::string, std::vector<std::string test::Exchange::*>> buffers = {
      {"response_body", {&test::Exchange::response_body}},
      {"host", {&test::Exchange::host}},
      {"status", {&test::Exchange::status}},
      {"uri", {&test::Exchange::uri}},
      {"uri_raw", {&test::Exchange::uri_raw}},
      {"method", {&test::Exchange::method}},
      {"request_body", {&test::Exchange::request_body, &test::Exchange::request_body_before}},
      {"cookie", {&test::Exchange::cookie, &test::Exchange::set_cookie}},
      {"headers", {&test::Exchange::request_headers, &test::Exchange::response_headers}}};
  std::vector<std::string> out;
  for (const auto member : buffers.at(name)) {
    out.push_back(exchange.*member);
  }
  return out;
}

bool matches(const Content& content, const test::Exchange& exchange) {
  for (std::string text : buffer_of(exchange, content.buffer)) {
    std::string wanted = content.bytes;
    text = text.substr(0, content.depth);
    if (content.nocase) {
      std::transform(text.begin(), text.end(), text.begin(), http::lower);
      std::transform(wanted.begin(), wanted.end(), wanted.begin(), http::lower);
    }
    if (text.find(wanted) != std::string::npos) {
      return !content.negated;
    }
  }
  return content.negated;
}

// Where the IP packet begins in an Ethernet frame.
std::size_t ip_begin(std::string_view frame) {
  std::size_t at = 12;
  while (at + 4 <= frame.size() &&
         (frame.substr(at, 2) == std::string_view("\x81\0", 2) || frame.substr(at, 2) == "\x88\xa8")) {
    at += 4;
  }
  return at + 2;
}

std::vector<test::Exchange> exchanges_of(const std::string& capture, const ConversationSettings& settings) {
  test::Recorder recorder;
  Conversations conversations(settings, recorder);
  for (const auto& [microseconds, frame] : sluice::test::read_capture(capture)) {
    const std::size_t ip = ip_begin(frame);
    Packet packet;
    if (ip < frame.size() && read_packet(reinterpret_cast<const std::uint8_t*>(frame.data()) + ip,
                                         static_cast<std::uint32_t>(frame.size() - ip), packet)) {
      conversations.packet(packet, microseconds / 1000);
    }
  }
  conversations.flush();
  return recorder.exchanges;
}

ConversationSettings settings_of(const json& test) {
  ConversationSettings settings;
  settings.flows.capacity = 4096;
  settings.extras = settings.http_connections = settings.http_transactions = 1024;
  settings.http_bytes = 16U << 20;
  settings.stream_bytes = 4U << 20;
  const std::string arguments = test["args"].dump();
  settings.flows.midstream = arguments.find("stream.midstream=true") != std::string::npos;
  if (arguments.find("layer-limit=3") != std::string::npos) {
    settings.http.response_layers = 3;
  }
  if (arguments.find("response-body-limit=1mb") != std::string::npos) {
    settings.http.response_body_limit = 1U << 20;
  }
  if (arguments.find("response-body-limit=200kb") != std::string::npos) {
    settings.http.response_body_limit = 200U << 10;
  }
  return settings;
}

constexpr const char* archive_name = "dpi/suricata-verify-plain-dev.tar.xz";

// The folder with INDEX.jsonl: the archive of the data folder, unpacked where tests may write.
std::string unpacked() {
  const std::string archive = sluice::test::data_path(archive_name);
  const std::string folder = ::testing::TempDir() + "sluice-suricata-verify-" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  const std::string command = "tar -xJf '" + archive + "' -C '" + folder + "'";
  return std::system(command.c_str()) == 0 ? folder : std::string();
}

TEST(SuricataCases, ContentsAreInTheBuffersThatTheirRulesName) {
  if (const std::string why = sluice::test::why_no_data(archive_name); !why.empty()) GTEST_SKIP() << why;
  const std::string folder = unpacked();
  ASSERT_FALSE(folder.empty());
  const std::string root = folder + "/suricata-verify/";
  std::ifstream index(root + "INDEX.jsonl");
  int checks = 0, right = 0, skipped = 0;
  std::set<std::string> cases;
  for (std::string line; std::getline(index, line);) {
    const json test = json::parse(line);
    std::map<int, Rule> rules;
    std::ifstream rule_file(root + test["rules"].get<std::string>());
    for (std::string text; std::getline(rule_file, text);) {
      if (const auto rule =
              text.starts_with('#') || text.find('(') == std::string::npos ? std::nullopt : read_rule(text)) {
        rules[rule->sid] = *rule;
      }
    }
    std::vector<test::Exchange> exchanges;
    for (const json& alert : test["alerts"]) {
      const json count = alert["count"];
      const int sid = alert["match"].value("alert.signature_id", rules.size() == 1 ? rules.begin()->first : 0);
      if (!rules.contains(sid) || !count.is_number() || count.get<int>() > 1) {
        skipped += test["test"].get<std::string>().find("http") != std::string::npos ? 1 : 0;
        continue;
      }
      if (exchanges.empty()) {
        exchanges = exchanges_of(root + test["pcap"].get<std::string>(), settings_of(test));
      }
      const Rule& rule = rules.at(sid);
      const bool found = std::any_of(exchanges.begin(), exchanges.end(), [&](const test::Exchange& exchange) {
        return std::all_of(rule.contents.begin(), rule.contents.end(),
                           [&](const Content& content) { return matches(content, exchange); });
      });
      ++checks;
      right += found == (count.get<int>() == 1) ? 1 : 0;
      cases.insert(test["test"].get<std::string>());
      EXPECT_EQ(found, count.get<int>() == 1)
          << test["test"] << " sid " << sid << ", " << exchanges.size() << " transactions";
    }
  }
  std::filesystem::remove_all(folder);
  std::cout << right << " of " << checks << " checks of " << cases.size() << " cases are as Suricata has them; "
            << skipped << " checks of HTTP cases have rules beyond plain contents\n";
  EXPECT_GE(checks, 270);
}

}  // namespace
}  // namespace sluice::flow
