add_op(
  norm
  SOURCES norm.cpp add_pending.cpp
  CPU norm_forward_cpu.cpp norm_backward_cpu.cpp
  CUDA norm_forward_cuda.cu norm_backward_cuda.cu
  TESTS norm_test.cpp norm_tape_test.cpp)
