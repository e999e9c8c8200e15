add_op(
  rotary
  SOURCES rotary.cpp
  CPU rotary_cpu.cpp
  CUDA rotary_cuda.cu
  TESTS rotary_test.cpp)
