add_op(
  dropout
  SOURCES dropout.cpp
  CPU dropout_cpu.cpp
  CUDA dropout_cuda.cu
  TESTS dropout_test.cpp)
