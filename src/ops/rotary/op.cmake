add_op(
  rotary
  SOURCES rotary.cpp rotary_table.cpp
  CPU rotary_cpu.cpp
  CUDA rotary_cuda.cu
  TESTS rotary_test.cpp rotary_table_test.cpp)
