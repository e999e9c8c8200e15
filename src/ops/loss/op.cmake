add_op(
  loss
  CPU loss_cpu.cpp half_loss_cpu.cpp
  CUDA loss_cuda.cu half_loss_cuda.cu
  TESTS loss_test.cpp)
