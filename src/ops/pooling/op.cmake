add_op(
  pooling
  SOURCES pooling.cpp
  CPU pooling_cpu.cpp
  CUDA pooling_cuda.cu
  TESTS pooling_test.cpp)
