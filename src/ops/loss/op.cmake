add_op(
  loss
  CPU loss_cpu.cpp distill_cpu.cpp preference_cpu.cpp
  CUDA loss_cuda.cu distill_cuda.cu preference_cuda.cu
  TESTS loss_test.cpp)
