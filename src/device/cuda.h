// What the device folder asks of the CUDA runtime, without its headers. Defined in cuda.cpp and
// referenced only behind `if constexpr (build::cuda)`.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace bloomery::cuda {

int num_devices();
std::string device_name(int index);
std::string device_uuid(int index);  // 16 bytes
void use_device(int index);          // for the calling thread
bool can_overlap_launches(int index);

void* allocate(int index, std::size_t bytes);  // null when out of memory
void release(int index, void* memory);
std::size_t free_bytes(int index);
void* allocate_pinned(std::size_t bytes);
void release_pinned(void* memory);

void* make_stream(int index);
void destroy_stream(void* stream);
void synchronize(void* stream);
void copy(void* stream, void* to, const void* from, std::size_t bytes);
void fill(void* stream, void* to, unsigned char byte, std::size_t bytes);

void* make_event(int index);
void destroy_event(void* event);
void record_event(void* event, void* stream);
void wait_event(void* stream, void* event);
void synchronize_event(void* event);
double seconds_between(void* earlier, void* later);

void* capture(void* stream, const std::function<void()>& work);  // cudaGraphExec_t
void replay(void* graph, void* stream);
void destroy_graph(void* graph);

// A named range of this thread for tools that listen (NVTX, nvtx.cpp). The text must end in a zero.
void push_range(const char* name);
void pop_range();

}  // namespace bloomery::cuda
