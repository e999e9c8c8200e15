add_op(
  noise
  SOURCES noise.cpp
  CPU noise_cpu.cpp
  CUDA noise_cuda.cu
  TESTS noise_test.cpp)
