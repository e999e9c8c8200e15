add_op(
  activation
  SOURCES activation.cpp
  CPU activation_cpu.cpp
  CUDA activation_cuda.cu
  TESTS activation_test.cpp)
