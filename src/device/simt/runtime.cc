// The fake CUDA runtime of the shim.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "device/simt/cuda_runtime.h"
#include "device/simt/fault.h"

namespace sluice::simt {

struct Stream {
  unsigned flags;
};
struct Event {
  bool of_busy = false;
  std::chrono::steady_clock::time_point at;
};

namespace {

constexpr std::size_t shared_without_asking = 48 << 10, shared_at_most = 227 << 10;

std::atomic<cudaError_t> broken{cudaSuccess};
std::atomic<unsigned long> made{0}, fault_from{0}, fault_to{0};
std::atomic<bool> fault_sticky{false};
std::atomic<bool> busy{false}, blocks{false};
std::atomic<unsigned long> waits{0};
thread_local cudaError_t last_error = cudaSuccess;
thread_local std::string report;

std::mutex book_mutex;
std::map<void*, std::size_t> device_book, pinned_book, registered_book;
std::map<const void*, std::size_t> shared_book;

cudaError_t note(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

// Every runtime call begins here: a broken device or a planned fault answers instead of it.
cudaError_t enter() {
  while (blocks.load()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  const unsigned long call = made++;
  if (call >= fault_from && call < fault_to) {
    if (fault_sticky) broken = cudaErrorUnknown;
    return note(cudaErrorUnknown);
  }
  return note(broken);
}

constexpr std::size_t memory_bytes = std::size_t{4} << 30;

cudaError_t allocate(std::map<void*, std::size_t>& book, void** pointer, std::size_t bytes) {
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (bytes > memory_bytes || posix_memalign(pointer, 256, bytes) != 0) return note(cudaErrorMemoryAllocation);
  std::memset(*pointer, 0xAB, bytes);
  const std::lock_guard lock(book_mutex);
  book[*pointer] = bytes;
  return cudaSuccess;
}

cudaError_t release(std::map<void*, std::size_t>& book, void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  const std::lock_guard lock(book_mutex);
  if (book.erase(pointer) == 0) return note(cudaErrorInvalidValue);
  std::free(pointer);
  return cudaSuccess;
}

// A call that waits for the device.
void note_wait() {
  if (busy || blocks) ++waits;
}

std::size_t total(const std::map<void*, std::size_t>& book) {
  const std::lock_guard lock(book_mutex);
  std::size_t sum = 0;
  for (const auto& [pointer, bytes] : book) sum += bytes;
  return sum;
}

}  // namespace

void fail_calls(unsigned calls, unsigned skip, bool sticky) {
  fault_sticky = sticky;
  fault_from = made + skip;
  fault_to = made + skip + calls;
}

void keep_busy(bool is_busy) {
  busy = is_busy;
}
unsigned long waits_made() {
  return waits;
}
void block_calls(bool block) {
  blocks = block;
}

void clear_faults() {
  busy = blocks = false;
  fault_from = fault_to = 0;
  broken = cudaSuccess;
  last_error = cudaSuccess;
  report.clear();
}

std::string last_report() {
  return report;
}
unsigned long calls_made() {
  return made;
}
std::size_t device_bytes() {
  return total(device_book);
}
std::size_t pinned_bytes() {
  return total(pinned_book) + total(registered_book);
}

cudaError_t allow_shared(const void* kernel, std::size_t bytes) {
  if (const cudaError_t error = enter(); error != cudaSuccess) return error;
  if (bytes > shared_at_most) return note(cudaErrorInvalidValue);
  const std::lock_guard lock(book_mutex);
  shared_book[kernel] = bytes;
  return cudaSuccess;
}

cudaError_t run_kernel(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes,
                       const std::function<void()>& body) {
  if (const cudaError_t error = enter(); error != cudaSuccess) return error;
  const std::size_t threads = std::size_t{block.x} * block.y * block.z;
  if (std::size_t{grid.x} * grid.y * grid.z == 0 || threads == 0 || threads > 1024 || grid.y > 65535 || grid.z > 65535)
    return note(cudaErrorInvalidConfiguration);
  {
    const std::lock_guard lock(book_mutex);
    const auto allowed = shared_book.find(kernel);
    if (shared_bytes > (allowed == shared_book.end() ? shared_without_asking : allowed->second))
      return note(cudaErrorInvalidValue);
  }
  std::string failure = run_grid(grid, block, shared_bytes, body);
  if (failure.empty()) return cudaSuccess;
  report = std::move(failure);
  broken = cudaErrorLaunchFailure;
  return note(cudaErrorLaunchFailure);
}

}  // namespace sluice::simt

using namespace sluice::simt;

#define SLUICE_SIMT_ENTER \
  if (const cudaError_t error = enter(); error != cudaSuccess) return error

// Defined by the main() of unit tests. A program that was built without CUDA links the shim too and must not find a GPU
// there.
extern "C" __attribute__((weak)) const bool sluice_simt_is_a_device;

cudaError_t cudaGetDeviceCount(int* count) {
  SLUICE_SIMT_ENTER;
  if (&sluice_simt_is_a_device == nullptr) return note(cudaErrorNoDevice);
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  SLUICE_SIMT_ENTER;
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  SLUICE_SIMT_ENTER;
  return device == 0 ? cudaSuccess : note(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  SLUICE_SIMT_ENTER;
  if (device != 0) return note(cudaErrorInvalidDevice);
  *properties = {};
  std::strcpy(properties->name, "host SIMT shim");
  properties->totalGlobalMem = memory_bytes;
  properties->sharedMemPerBlock = shared_without_asking;
  properties->sharedMemPerBlockOptin = shared_at_most;
  properties->major = 9;
  properties->multiProcessorCount = 2;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->warpSize = 32;
  properties->asyncEngineCount = 2;
  properties->l2CacheSize = 1 << 20;
  properties->canMapHostMemory = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp properties;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, device); error != cudaSuccess) return error;
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = properties.multiProcessorCount;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(properties.sharedMemPerBlockOptin);
      break;
    case cudaDevAttrAsyncEngineCount:
      *value = properties.asyncEngineCount;
      break;
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  SLUICE_SIMT_ENTER;
  if (device != 0 || bytes < 13) return note(cudaErrorInvalidValue);
  std::strcpy(text, "0000:00:00.0");
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  note_wait();
  return enter();
}

// Cures a broken device. Memory that was not freed before is lost on a GPU, so it is refused here.
cudaError_t cudaDeviceReset() {
  note_wait();
  broken = cudaSuccess;
  SLUICE_SIMT_ENTER;
  return device_bytes() == 0 && pinned_bytes() == 0 ? cudaSuccess : note(cudaErrorUnknown);
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total_bytes) {
  SLUICE_SIMT_ENTER;
  *total_bytes = std::size_t{4} << 30;
  *free = *total_bytes - device_bytes();
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = broken;
  return error;
}

cudaError_t cudaPeekAtLastError() {
  return last_error;
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorNoDevice:
      return "this program was built without CUDA";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorHostMemoryAlreadyRegistered:
      return "part or all of the requested memory range is already mapped";
    case cudaErrorHostMemoryNotRegistered:
      return "pointer does not correspond to a registered memory region";
    case cudaErrorLaunchFailure:
      return report.empty() ? "unspecified launch failure" : report.c_str();
    case cudaErrorUnknown:
      return "unknown error";
  }
  return "unrecognized error code";
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define SLUICE_SIMT_NAME(name) \
  case name:                   \
    return #name
    SLUICE_SIMT_NAME(cudaSuccess);
    SLUICE_SIMT_NAME(cudaErrorInvalidValue);
    SLUICE_SIMT_NAME(cudaErrorMemoryAllocation);
    SLUICE_SIMT_NAME(cudaErrorInvalidConfiguration);
    SLUICE_SIMT_NAME(cudaErrorNoDevice);
    SLUICE_SIMT_NAME(cudaErrorInsufficientDriver);
    SLUICE_SIMT_NAME(cudaErrorInvalidDevice);
    SLUICE_SIMT_NAME(cudaErrorInvalidResourceHandle);
    SLUICE_SIMT_NAME(cudaErrorNotReady);
    SLUICE_SIMT_NAME(cudaErrorHostMemoryAlreadyRegistered);
    SLUICE_SIMT_NAME(cudaErrorHostMemoryNotRegistered);
    SLUICE_SIMT_NAME(cudaErrorLaunchFailure);
    SLUICE_SIMT_NAME(cudaErrorUnknown);
#undef SLUICE_SIMT_NAME
  }
  return "unrecognized error code";
}

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  SLUICE_SIMT_ENTER;
  return allocate(device_book, pointer, bytes);
}
cudaError_t cudaFree(void* pointer) {
  note_wait();
  return release(device_book, pointer);
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  SLUICE_SIMT_ENTER;
  return allocate(pinned_book, pointer, bytes);
}
cudaError_t cudaFreeHost(void* pointer) {
  note_wait();
  return release(pinned_book, pointer);
}

cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned) {
  SLUICE_SIMT_ENTER;
  if (pointer == nullptr || bytes == 0) return note(cudaErrorInvalidValue);
  const std::lock_guard lock(book_mutex);
  auto next = registered_book.lower_bound(pointer);
  const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
  if (next != registered_book.end() && reinterpret_cast<std::uintptr_t>(next->first) < begin + bytes)
    return note(cudaErrorHostMemoryAlreadyRegistered);
  if (next != registered_book.begin() &&
      reinterpret_cast<std::uintptr_t>(std::prev(next)->first) + std::prev(next)->second > begin)
    return note(cudaErrorHostMemoryAlreadyRegistered);
  registered_book[pointer] = bytes;
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* pointer) {
  note_wait();
  const std::lock_guard lock(book_mutex);
  return registered_book.erase(pointer) != 0 ? cudaSuccess : note(cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  SLUICE_SIMT_ENTER;
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
  SLUICE_SIMT_ENTER;
  if (bytes != 0) std::memmove(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, bytes, kind);
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t rows, cudaMemcpyKind, cudaStream_t) {
  SLUICE_SIMT_ENTER;
  if (width > to_pitch || width > from_pitch) return note(cudaErrorInvalidValue);
  for (std::size_t row = 0; row < rows; ++row)
    std::memcpy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
  return cudaSuccess;
}

cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                         std::size_t rows, cudaMemcpyKind kind) {
  return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, rows, kind);
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
  SLUICE_SIMT_ENTER;
  if (bytes != 0) std::memset(to, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return cudaMemsetAsync(to, value, bytes);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  SLUICE_SIMT_ENTER;
  *stream = new Stream{flags};
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  note_wait();
  return enter();
}
cudaError_t cudaStreamQuery(cudaStream_t) {
  SLUICE_SIMT_ENTER;
  return busy ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
  return enter();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  SLUICE_SIMT_ENTER;
  *event = new Event{};
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  SLUICE_SIMT_ENTER;
  event->at = std::chrono::steady_clock::now();
  event->of_busy = busy;
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  SLUICE_SIMT_ENTER;
  return busy && event->of_busy ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
  note_wait();
  return enter();
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  SLUICE_SIMT_ENTER;
  *milliseconds = std::chrono::duration<float, std::milli>(to->at - from->at).count();
  return cudaSuccess;
}
