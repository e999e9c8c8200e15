add_op(
  token_choice
  SOURCES token_choice.cpp
  CPU token_choice_cpu.cpp
  CUDA token_choice_cuda.cu
  TESTS token_choice_test.cpp)
