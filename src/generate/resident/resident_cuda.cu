// The launch of the resident kernel, and what its host side needs of CUDA.
#include "device/cuda_check.h"
#include "generate/resident/kernel.cuh"
#include "generate/resident/resident.h"

namespace bloomery::resident {
namespace {

template <int kRows, QuantizedFormat kFormat, class T>
void launch_kernel(Stream& stream, const Launch& l) {
  const auto rounded = [](int bytes) { return (bytes + 127) / 128 * 128; };
  const int input_bytes =
      rounded(std::max<int>(l.input_bytes, static_cast<int>(sizeof(AttentionShared<T>))));
  const int stream_bytes = rounded(l.stream_bytes), num_sums = (l.num_sums + 15) / 16 * 16;
  const int fixed = kSharedBytes + input_bytes + stream_bytes +
                    num_sums * kWarps * static_cast<int>(sizeof(float));
  int room = 0;
  check_cuda(cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                    stream.device().options().index),
             "cudaDeviceGetAttribute");
  const int ring_bytes = (room - fixed) / 128 * 128, bytes = fixed + ring_bytes;
  check(ring_bytes >= 2 * l.tile_bytes, "resident kernel: no room for two tiles of ", l.tile_bytes,
        " bytes");
  const auto kernel = run_phases<kRows, kFormat, T>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "cudaFuncSetAttribute");
  const Arguments a{.phases = l.phases,
                    .num_phases = l.num_phases,
                    .rows = l.rows,
                    .arrivals = l.arrivals,
                    .places = l.places,
                    .input_bytes = input_bytes,
                    .stream_bytes = stream_bytes,
                    .num_sums = num_sums,
                    .ring_bytes = ring_bytes};
  cudaLaunchAttribute together{};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(num_blocks(stream.device())));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = static_cast<std::size_t>(bytes);
  config.stream = cuda_stream(stream);
  config.attrs = &together;
  config.numAttrs = 1;
  check_cuda(cudaLaunchKernelEx(&config, kernel, a), "cudaLaunchKernelEx");
}

template <QuantizedFormat kFormat, class T>
void launch_rows(Stream& stream, const Launch& l) {
  if (l.rows == 1) {
    launch_kernel<1, kFormat, T>(stream, l);
  } else if (l.rows == 2) {
    launch_kernel<2, kFormat, T>(stream, l);
  } else {
    launch_kernel<kMaxRows, kFormat, T>(stream, l);
  }
}

template <class T>
void launch_format(Stream& stream, const Launch& l) {
  if (l.format == QuantizedFormat::none) {
    launch_rows<QuantizedFormat::none, T>(stream, l);
  } else if (l.format == QuantizedFormat::int8) {
    launch_rows<QuantizedFormat::int8, T>(stream, l);
  } else {
    launch_rows<QuantizedFormat::fp8, T>(stream, l);
  }
}

}  // namespace

void launch(Stream& stream, const Launch& l) {
  if (l.dtype == DType::bf16) {
    launch_format<__nv_bfloat16>(stream, l);
  } else {
    launch_format<__half>(stream, l);
  }
}

int num_blocks(const Device& device) {
  const int index = device.options().index;
  int major = 0, processors = 0;
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index),
             "cudaDeviceGetAttribute");
  check_cuda(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, index),
             "cudaDeviceGetAttribute");
  return major >= 9 ? processors : 0;
}

bool is_capturing(const Stream& stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(cuda_stream(stream), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

void upload(Stream& stream, void* to, const void* from, std::size_t bytes) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  check_cuda(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, cuda_stream(stream)),
             "cudaMemcpyAsync");
  check_cuda(cudaStreamSynchronize(cuda_stream(stream)), "cudaStreamSynchronize");
  check_cuda(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
}

}  // namespace bloomery::resident
