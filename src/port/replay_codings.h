// Bodies of HTTP that cost who decodes them far more than who sends them: each is gzip in gzip, of at most
// `coded_body_bytes`, and what is inside is one of
// - zeros, of which a byte of the body makes hundreds of thousands;
// - a gzip header whose name never ends, so that nothing comes out however much is read;
// - gzip members of nothing, one after another;
// - empty blocks of deflate, one after another.
// They are declared as `coded_body_encoding`.
//
// Cost: some 0.3 s at the first call, nothing later. Thread-safety: any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::port {

inline constexpr std::size_t coded_body_bytes = 1200;
inline constexpr std::string_view coded_body_encoding = "gzip, gzip";

const std::vector<std::string>& coded_bodies();

}  // namespace sluice::port
