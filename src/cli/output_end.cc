#include "cli/output_end.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

namespace sluice::cli {
namespace {

bool nobody_reads() {
  if (fcntl(STDOUT_FILENO, F_GETFD) < 0) return true;
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

}  // namespace

int end_output(int status) {
  errno = 0;
  std::cout.flush();
  const bool is_written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  const int why = errno;
  if (is_written || status != 0 || nobody_reads()) return status;
  std::fprintf(stderr, "sluice: not all output could be written%s%s\n", why != 0 ? ": " : "",
               why != 0 ? std::strerror(why) : "");
  return 1;
}

}  // namespace sluice::cli
