#include "base/thrown.h"

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "base/quote.h"

namespace sluice {
namespace {

[[noreturn]] void end() {
  if (std::current_exception() == nullptr) {
    std::fputs("sluice: ended without an exception to name (std::terminate)\n", stderr);
    std::abort();
  }
  try {
    throw;
  } catch (...) {
    std::fprintf(stderr, "sluice: ended by an exception that nothing caught, such as one of a function's: %s\n",
                 what_was_thrown().c_str());
  }
  std::abort();
}

}  // namespace

std::string what_was_thrown() {
  try {
    throw;
  } catch (const std::exception& error) {
    return printable(error.what());
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

void name_last_exception() {
  std::set_terminate(end);
}

}  // namespace sluice
