add_op(
  neftune
  SOURCES neftune.cpp
  CPU neftune_cpu.cpp
  CUDA neftune_cuda.cu
  TESTS neftune_test.cpp)
