// Fibers for the SIMT shim: one stack each, switched by hand without system calls (x86-64, System V).
//
// A fiber runs `entry` to its end; yield_fiber() goes back to whoever resumed it. AddressSanitizer is notified of every
// switch. Thread-safety: a fiber belongs to the OS thread that started it. Cost: about 5 ns a switch; a stack is mapped
// once, with a guard page below it, and used again.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace sluice::simt {

struct FiberStack {
  std::byte* base = nullptr;  // lowest usable byte
  std::size_t bytes = 0;
};

// The stacks of one OS thread, handed out last in, first out, so that short kernels stay in the cache.
class StackPool {
 public:
  ~StackPool();
  FiberStack take();
  // `abandoned`: the fiber did not run to its end, its frames are still on the stack.
  void give(FiberStack stack, bool abandoned);

 private:
  std::vector<FiberStack> free_;
};

class Fiber {
 public:
  using Entry = void (*)(void* context);
  // Prepares the fiber; nothing runs before resume().
  void start(FiberStack stack, Entry entry, void* context);
  // Runs until the fiber yields or ends. True: it has ended.
  bool resume();
  FiberStack stack() const { return stack_; }

 private:
  friend void yield_fiber();
  static void run();
  void leave(bool last);

  void* sp_ = nullptr;         // the fiber's stack pointer while it does not run
  void* caller_sp_ = nullptr;  // the resumer's while it does
  FiberStack stack_;
  Entry entry_ = nullptr;
  void* context_ = nullptr;
  bool ended_ = false;
  void* fake_stack_ = nullptr;  // AddressSanitizer's bookkeeping
  void* caller_fake_stack_ = nullptr;
  const void* caller_base_ = nullptr;
  std::size_t caller_bytes_ = 0;
};

// Leaves the running fiber; returns when it is resumed.
void yield_fiber();

}  // namespace sluice::simt
