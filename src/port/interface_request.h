// One ioctl(2) on a kernel interface, by name, through a control socket of its own. Control path: three system calls.
#pragma once

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace sluice::port {

// Fills in the name; false, and errno says why, when the kernel refuses.
inline bool interface_request(const std::string& interface, unsigned long operation, ifreq& argument) {
  const int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (control < 0) {
    return false;
  }
  interface.copy(argument.ifr_name, IFNAMSIZ - 1);
  const bool ok = ioctl(control, operation, &argument) == 0;
  const int error = errno;
  close(control);
  errno = error;
  return ok;
}

}  // namespace sluice::port
