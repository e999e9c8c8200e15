add_op(
  task_loss
  SOURCES task_loss.cpp
  CPU task_loss_cpu.cpp
  CUDA task_loss_cuda.cu
  TESTS task_loss_test.cpp)
