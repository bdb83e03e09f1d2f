#include "match/rules/classification.h"

#include <array>

#include "base/quote.h"
#include "match/rules/words.h"

namespace sluice::match {
namespace {

struct Usual {
  std::string_view name;
  std::string_view description;
  std::uint8_t priority;
};

constexpr auto usual = std::to_array<Usual>({
    {"attempted-admin", "Attempted Administrator Privilege Gain", 1},
    {"attempted-user", "Attempted User Privilege Gain", 1},
    {"inappropriate-content", "Inappropriate Content was Detected", 1},
    {"policy-violation", "Potential Corporate Privacy Violation", 1},
    {"shellcode-detect", "Executable code was detected", 1},
    {"successful-admin", "Successful Administrator Privilege Gain", 1},
    {"successful-user", "Successful User Privilege Gain", 1},
    {"trojan-activity", "A Network Trojan was detected", 1},
    {"unsuccessful-user", "Unsuccessful User Privilege Gain", 1},
    {"web-application-attack", "Web Application Attack", 1},
    {"file-format", "Known malicious file or file based exploit", 1},
    {"malware-cnc", "Known malware command and control traffic", 1},
    {"client-side-exploit", "Known client side exploit attempt", 1},
    {"command-and-control", "Malware Command and Control Activity Detected", 1},
    {"exploit-kit", "Exploit Kit Activity Detected", 1},
    {"domain-c2", "Domain Observed Used for C2 Detected", 1},
    {"targeted-activity", "Targeted Malicious Activity was Detected", 1},
    {"credential-theft", "Successful Credential Theft Detected", 1},
    {"attempted-dos", "Attempted Denial of Service", 2},
    {"attempted-recon", "Attempted Information Leak", 2},
    {"bad-unknown", "Potentially Bad Traffic", 2},
    {"default-login-attempt", "Attempt to login by a default username and password", 2},
    {"denial-of-service", "Detection of a Denial of Service Attack", 2},
    {"misc-attack", "Misc Attack", 2},
    {"non-standard-protocol", "Detection of a non-standard protocol or event", 2},
    {"rpc-portmap-decode", "Decode of an RPC Query", 2},
    {"successful-dos", "Denial of Service", 2},
    {"successful-recon-largescale", "Large Scale Information Leak", 2},
    {"successful-recon-limited", "Information Leak", 2},
    {"suspicious-filename-detect", "A suspicious filename was detected", 2},
    {"suspicious-login", "An attempted login using a suspicious username was detected", 2},
    {"system-call-detect", "A system call was detected", 2},
    {"unusual-client-port-connection", "A client was using an unusual port", 2},
    {"web-application-activity", "Access to a potentially vulnerable web application", 2},
    {"sdf", "Sensitive Data was Transmitted Across the Network", 2},
    {"social-engineering", "Possible Social Engineering Attempted", 2},
    {"pup-activity", "Possibly Unwanted Program Detected", 2},
    {"external-ip-check", "Device Retrieving External IP Address Detected", 2},
    {"coin-mining", "Crypto Currency Mining Activity Detected", 2},
    {"icmp-event", "Generic ICMP event", 3},
    {"misc-activity", "Misc activity", 3},
    {"network-scan", "Detection of a Network Scan", 3},
    {"not-suspicious", "Not Suspicious Traffic", 3},
    {"protocol-command-decode", "Generic Protocol Command Decode", 3},
    {"string-detect", "A suspicious string was detected", 3},
    {"unknown", "Unknown Traffic", 3},
    {"tcp-connection", "A TCP connection was detected", 4},
});

}  // namespace

Classification Classification::defaults() {
  Classification classification;
  for (const Usual& one : usual) {
    classification.classes_.emplace(one.name, ClassType{std::string(one.description), one.priority});
  }
  return classification;
}

Expected<void> Classification::add_class(std::string_view line) {
  const auto parts = split(line, ',');
  const auto priority = number_of(parts.back());
  if (parts.size() != 3 || parts[0].empty() || !priority || *priority < 1 || *priority > 255) {
    return make_error(in_quotes(line) + " is not NAME,DESCRIPTION,PRIORITY with a priority from 1 to 255");
  }
  classes_.insert_or_assign(lower_case(parts[0]),
                            ClassType{std::string(parts[1]), static_cast<std::uint8_t>(*priority)});
  return {};
}

Expected<void> Classification::add_reference(std::string_view line) {
  const std::string_view system = take_word(line);
  const std::string_view url = trimmed(line);
  if (system.empty() || url.empty()) return make_error("a reference's line is not SYSTEM URL");
  urls_.insert_or_assign(lower_case(system), std::string(url));
  return {};
}

const ClassType* Classification::find(std::string_view name) const {
  const auto at = classes_.find(name);
  return at == classes_.end() ? nullptr : &at->second;
}

const std::string* Classification::url_of(std::string_view system) const {
  const auto at = urls_.find(lower_case(system));
  return at == urls_.end() ? nullptr : &at->second;
}

}  // namespace sluice::match
