add_op(
  transpose
  CPU transpose_cpu.cpp
  CUDA transpose_cuda.cu
  TESTS transpose_test.cpp)
