add_op(
  low_rank
  SOURCES low_rank.cpp
  CPU low_rank_cpu.cpp
  CUDA low_rank_cuda.cu
  TESTS low_rank_test.cpp)
