// What a driver changes on a kernel interface for a port, and nobody puts back: its MTU and its promiscuous mode.
//
// Made before the driver touches the interface; destruction puts both back, if they are still as the port wanted them,
// whatever the interface is called by then. One that is gone needs nothing, nor does another one that has its name.
// Control thread. Cost: a few system calls.
#pragma once

#include <string>

#include "port/kernel_link.h"

namespace sluice::port {

// 0: there is no such interface.
unsigned interface_mtu(const std::string& interface);

// 0, or the errno with which the kernel refuses.
int set_interface_mtu(const std::string& interface, unsigned mtu);

// False, and errno says why, when the kernel refuses.
bool set_promiscuous(const std::string& interface);

class InterfaceSettings {
 public:
  // `mtu`: what the port will set.
  InterfaceSettings(const std::string& interface, unsigned mtu);
  ~InterfaceSettings();
  InterfaceSettings(const InterfaceSettings&) = delete;
  InterfaceSettings& operator=(const InterfaceSettings&) = delete;

 private:
  KernelLink link_;
  int wanted_mtu_;
  int mtu_before_ = 0;  // 0: unknown
  bool promiscuous_before_ = true;
};

}  // namespace sluice::port
