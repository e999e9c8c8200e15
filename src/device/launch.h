// Kernels are structs of named arguments. Their implementations are overloads of run() selected
// by a tag. A kernel's header declares
//
//   struct Scale { ConstView x; View y; float factor; };
//   template <int kLevel> void run(OnCpu<kLevel>, Stream&, const Scale&);  // scale_cpu.cpp
//   void run(OnCuda, Stream&, const Scale&);                               // scale_cuda.cu
//
// and its *_cpu.cpp file, compiled once for each instruction-set level, defines
// `template <> void run(ThisCpu, Stream& stream, const Scale& k) { ... }`. In a build without CUDA
// the CUDA overload is declared and never referenced: a missing kernel is a link error.
//
// A kernel whose floating-point operations count also has `double flops(const Scale&)`.
#pragma once

#include <typeinfo>

#include "build_config.h"
#include "device/op_clock.h"

namespace bloomery {

struct OnCuda {};
template <int kLevel>
struct OnCpu {};

#ifdef BLOOMERY_CPU_LEVEL
using ThisCpu = OnCpu<BLOOMERY_CPU_LEVEL>;
#endif

template <class Kernel>
void launch_cpu(Stream& stream, const Kernel& kernel) {
  if constexpr (build::num_cpu_levels > 1) {
    switch (cpu_level()) {
      case 3:
        return run(OnCpu<3>{}, stream, kernel);
      case 2:
        return run(OnCpu<2>{}, stream, kernel);
      case 1:
        return run(OnCpu<1>{}, stream, kernel);
    }
  }
  run(OnCpu<0>{}, stream, kernel);
}

// Operations of the kernels that an abstract device was given. A service of it.
struct FlopCount {
  explicit FlopCount(Device&) {}
  double total = 0;
};

template <class Kernel>
void launch(Stream& stream, const Kernel& kernel) {
  if (stream.abstract()) {
    if (Collector* const collector = stream.collector()) {
      collector->take(typeid(Kernel), &kernel);
    }
    if constexpr (requires { flops(kernel); }) {
      stream.device().service<FlopCount>().total += flops(kernel);
    }
    return;
  }
  if constexpr (build::cuda) {
    if (stream.on_cuda()) {
      if (Collector* const collector = stream.collector();
          collector != nullptr && collector->take(typeid(Kernel), &kernel)) {
        return;
      }
      return timed_launch(stream, [&] { run(OnCuda{}, stream, kernel); });
    }
  }
  if (stream.queued()) {
    stream.submit([&stream, kernel] { launch_cpu(stream, kernel); });
  } else {
    launch_cpu(stream, kernel);
  }
}

}  // namespace bloomery
