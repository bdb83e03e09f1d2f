#include "device/simt/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#ifdef SLUICE_SANITIZED
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
constexpr std::size_t stack_bytes = 512 << 10;  // red zones make frames larger
#else
constexpr std::size_t stack_bytes = 128 << 10;
#endif
constexpr std::size_t guard_bytes = 4096;

extern "C" void sluice_simt_switch(void** save, void* load);
asm(R"(
.text
.globl sluice_simt_switch
.type sluice_simt_switch,@function
sluice_simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size sluice_simt_switch,.-sluice_simt_switch
)");

namespace sluice::simt {
namespace {

thread_local Fiber* running = nullptr;

void start_switch([[maybe_unused]] void** fake, [[maybe_unused]] const void* base, [[maybe_unused]] std::size_t bytes) {
#ifdef SLUICE_SANITIZED
  __sanitizer_start_switch_fiber(fake, base, bytes);
#endif
}

void finish_switch([[maybe_unused]] void* fake, [[maybe_unused]] const void** base,
                   [[maybe_unused]] std::size_t* bytes) {
#ifdef SLUICE_SANITIZED
  __sanitizer_finish_switch_fiber(fake, base, bytes);
#endif
}

}  // namespace

StackPool::~StackPool() {
  for (const FiberStack& stack : free_) munmap(stack.base - guard_bytes, stack.bytes + guard_bytes);
}

FiberStack StackPool::take() {
  if (!free_.empty()) {
    const FiberStack stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void* map = mmap(nullptr, stack_bytes + guard_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED || mprotect(map, guard_bytes, PROT_NONE) != 0) {
    std::perror("SIMT shim: no memory for a fiber's stack");
    std::abort();
  }
  return {static_cast<std::byte*>(map) + guard_bytes, stack_bytes};
}

void StackPool::give(FiberStack stack, [[maybe_unused]] bool abandoned) {
#ifdef SLUICE_SANITIZED
  if (abandoned) __asan_unpoison_memory_region(stack.base, stack.bytes);
#endif
  free_.push_back(stack);
}

void Fiber::start(FiberStack stack, Entry entry, void* context) {
  stack_ = stack;
  entry_ = entry;
  context_ = context;
  ended_ = false;
  fake_stack_ = nullptr;
  // Layout that the switch pops: six registers, the address to return to, and a null return address above it, so that
  // the entry sees the stack as if called (8 bytes off a multiple of 16).
  auto* top = reinterpret_cast<std::uint64_t*>(stack.base + stack.bytes) - 1;
  top[0] = 0;
  top[-1] = reinterpret_cast<std::uint64_t>(&Fiber::run);
  for (int i = 2; i <= 7; ++i) top[-i] = 0;
  sp_ = top - 7;
}

void Fiber::run() {
  Fiber& self = *running;
  finish_switch(nullptr, &self.caller_base_, &self.caller_bytes_);
  self.entry_(self.context_);
  self.ended_ = true;
  self.leave(true);
}

bool Fiber::resume() {
  Fiber* const outer = running;
  running = this;
  start_switch(&caller_fake_stack_, stack_.base, stack_.bytes);
  sluice_simt_switch(&caller_sp_, sp_);
  finish_switch(caller_fake_stack_, nullptr, nullptr);
  running = outer;
  return ended_;
}

void Fiber::leave(bool last) {
  start_switch(last ? nullptr : &fake_stack_, caller_base_, caller_bytes_);
  sluice_simt_switch(&sp_, caller_sp_);
  finish_switch(fake_stack_, &caller_base_, &caller_bytes_);
}

void yield_fiber() {
  running->leave(false);
}

}  // namespace sluice::simt
