// A request as one who knows the rules makes it: their contents in its path, its query and its headers, so that each
// buffer of HTTP holds patterns of many rules at once. The bytes that would end the URI or a line are written as %XX in
// the URI, and left out of the headers: it is one whole request of HTTP/1.1, of 300 to 1,400 bytes.
//
// Cost: some us. Thread-safety: any thread.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace sluice::port {

// `pieces`: contents, at least one.
std::string attack_request(const std::vector<std::string>& pieces, std::mt19937_64& random);

}  // namespace sluice::port
